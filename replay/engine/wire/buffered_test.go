package wire

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestTakeReadsAResponseFromPieces(t *testing.T) {
	rows := []struct {
		why  string
		in   string
		head bool
		want Response
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: true}},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false, Response{Status: 200, Bytes: 2, KeepAlive: true}},
		{"early hints", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", false, Response{Status: 204, KeepAlive: true}},
		{"HEAD has no body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, Response{Status: 200, KeepAlive: true}},
		{"a head that outgrows the first buffer", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*bufferBytes) +
			"\r\nContent-Length: 1\r\n\r\nx", false, Response{Status: 200, Bytes: 1, KeepAlive: true}},
	}
	for _, row := range rows {
		for _, piece := range []int{1, 7, len(row.in)} {
			rd := NewResponseReader(nil)
			left := []byte(row.in)
			for len(left) > 0 {
				n := copy(rd.Space(1<<20), left[:min(piece, len(left))])
				left = left[n:]
				got, err := rd.Take(n, row.head)
				switch {
				case len(left) > 0 && err != ErrNotYet:
					t.Fatalf("%s, in pieces of %d: %+v and %v with %d bytes to come", row.why, piece, got, err, len(left))
				case len(left) == 0 && (err != nil || got != row.want):
					t.Errorf("%s, in pieces of %d: %+v, %v", row.why, piece, got, err)
				}
			}
		}
	}
}

func TestSpaceEndsAtTheLimit(t *testing.T) {
	rd := NewResponseReader(nil)
	const limit = 4 * bufferBytes
	head := "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
	sent := 0
	for {
		room := rd.Space(limit)
		if room == nil {
			break
		}
		n := copy(room, head[min(sent, len(head)):]+strings.Repeat("x", len(room)))
		sent += n
		if _, err := rd.Take(n, false); err != ErrNotYet {
			t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	// What the buffer has no room for comes from a source that may block.
	rest := strings.Repeat("x", len(head)+100_000-sent)
	got, err := rd.Finish(strings.NewReader(rest), false)
	if err != nil || got.Bytes != 100_000 || sent >= limit {
		t.Errorf("%+v, %v after %d bytes", got, err, sent)
	}
	rd.Reset()
	if _, err := rd.Finish(io.LimitReader(bytes.NewReader(nil), 0), false); err != ErrClosedEarly {
		t.Errorf("an empty connection: %v", err)
	}
}
