package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestResponse(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	rows := []struct {
		why   string
		in    string
		head  bool
		want  Response
		wrong error
	}{
		{"a body with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: true}, nil},
		{"no reason phrase", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", false, Response{Status: 404, Bytes: 0, KeepAlive: true}, nil},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: true}, nil},
		{"header names in any case", "HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:2\r\n\r\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: true}, nil},
		{"a long body", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long, false, Response{Status: 200, Bytes: 100000, KeepAlive: true}, nil},
		{"a long header", "HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Length: 1\r\n\r\nx", false, Response{Status: 200, Bytes: 1, KeepAlive: true}, nil},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", false, Response{Status: 200, Bytes: 13, KeepAlive: true}, nil},
		{"chunks and trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", false, Response{Status: 200, Bytes: 1, KeepAlive: true}, nil},
		{"chunks win over a length, and end the connection", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, Response{Status: 200, Bytes: 0, KeepAlive: false}, nil},
		{"a body until the connection ends", "HTTP/1.1 200 OK\r\n\r\nabc", false, Response{Status: 200, Bytes: 3, KeepAlive: false}, nil},
		{"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: false}, nil},
		{"HTTP/1.0 with keep-alive does not", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: true}, nil},
		{"Connection: close", "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nok", false, Response{Status: 200, Bytes: 2, KeepAlive: false}, nil},
		{"HEAD has a length and no body", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", true, Response{Status: 200, Bytes: 0, KeepAlive: true}, nil},
		{"304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n", false, Response{Status: 304, Bytes: 0, KeepAlive: true}, nil},
		{"204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", false, Response{Status: 204, Bytes: 0, KeepAlive: true}, nil},
		{"100 and 103 come before the answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", false, Response{Status: 200, Bytes: 1, KeepAlive: true}, nil},
		{"a second answer that nobody asked for", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n", false, Response{Status: 200, Bytes: 1, KeepAlive: false}, nil},
		{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", false, Response{Status: 200, Bytes: 1, KeepAlive: true}, nil},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", false, Response{Status: 200, Bytes: 0, KeepAlive: false}, ErrBadResponse},
		{"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", false, Response{Status: 200, Bytes: 0, KeepAlive: false}, ErrBadResponse},
		{"a length past all bounds", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", false, Response{Status: 200, Bytes: 0, KeepAlive: false}, ErrBadResponse},
		{"a chunk size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false, Response{Status: 200, Bytes: 0, KeepAlive: true}, ErrBadResponse},
		{"a chunk that is too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", false, Response{Status: 200, Bytes: 1, KeepAlive: true}, ErrBadResponse},
		{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", false, Response{}, ErrBadResponse},
		{"a header without a colon", "HTTP/1.1 200 OK\r\nfoo\r\n\r\n", false, Response{}, ErrBadResponse},
		{"a head without an end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeadBytes+1), false, Response{}, ErrBadResponse},
		{"nothing at all", "", false, Response{}, ErrClosedEarly},
		{"half a head", "HTTP/1.1 200 OK\r\nConte", false, Response{}, ErrClosedEarly},
		{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", false, Response{Status: 200, Bytes: 4, KeepAlive: true}, ErrClosedEarly},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf", false, Response{Status: 200, Bytes: 4, KeepAlive: true}, ErrClosedEarly},
	}
	for _, row := range rows {
		for how, piece := range map[string]int{"whole": len(row.in), "byte by byte": 1, "in sevens": 7} {
			got, err := parse([]byte(row.in), max(piece, 1), row.head)
			if !errors.Is(err, row.wrong) || (row.wrong == nil && err != nil) {
				t.Errorf("%s (%s): error %v, want %v", row.why, how, err, row.wrong)
			}
			if err != nil {
				got.KeepAlive = row.want.KeepAlive // a failed connection is never kept
				got.Status = row.want.Status
			}
			if how != "whole" && row.why == "a second answer that nobody asked for" {
				continue // it has not arrived yet; the next read finds it
			}
			if got != row.want {
				t.Errorf("%s (%s): %+v, want %+v", row.why, how, got, row.want)
			}
		}
	}
}

// parse feeds a connection's bytes in pieces, and its end where they do not make a whole response.
func parse(in []byte, piece int, toHEAD bool) (Response, error) {
	p := &ResponseParser{}
	p.Begin(toHEAD)
	for len(in) > 0 {
		n := min(piece, len(in))
		used, whole, err := p.Feed(in[:n])
		if used < n {
			p.KeepAlive = false
		}
		if whole || err != nil {
			return p.Response, err
		}
		in = in[n:]
	}
	return p.Response, p.End()
}

// FuzzResponse: no input makes the reader panic or hang, or count more than there was; and how the bytes are cut into
// reads changes nothing.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: x\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\n\r\nbody",
		"HTTP/1.1 304 Not Modified\r\nConnection: close, x\r\n\r\n",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, toHEAD bool) {
		got, err := parse(in, max(len(in), 1), toHEAD)
		if got.Bytes < 0 || got.Bytes > int64(len(in)) {
			t.Fatalf("%d body bytes in %d", got.Bytes, len(in))
		}
		if err == nil && (got.Status < 101 || got.Status > 999) {
			t.Fatalf("status %d without an error", got.Status)
		}
		again, errAgain := parse(in, 1, toHEAD)
		if (err == nil) != (errAgain == nil) || got.Status != again.Status || got.Bytes != again.Bytes {
			t.Fatalf("whole: %+v %v, byte by byte: %+v %v", got, err, again, errAgain)
		}
	})
}

func TestSessionInfo(t *testing.T) {
	const end = "Content-Length: 0\r\n\r\n"
	many := strings.Builder{}
	for i := range 10_000 {
		fmt.Fprintf(&many, "Set-Cookie: c%d=1\r\n", i)
	}
	for _, c := range []struct {
		why, head string
		location  string
		cookies   int
	}{
		{"nothing", "HTTP/1.1 200 OK\r\n", "", 0},
		{"a redirect and two cookies", "HTTP/1.1 302 Found\r\nlocation: /wp-login.php\r\nSet-Cookie: a=1\r\nSET-COOKIE: b=2\r\n", "/wp-login.php", 2},
		{"of the interim response nothing is kept", "HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=1\r\n\r\nHTTP/1.1 200 OK\r\n", "", 0},
		{"a bare carriage return", "HTTP/1.1 302 Found\r\nLocation: /a\rX: 1\r\nSet-Cookie: a=1\rX: 1\r\n", "", 0},
		{"a huge cookie", "HTTP/1.1 200 OK\r\nSet-Cookie: a=" + strings.Repeat("x", 100_000) + "\r\n", "", 0},
		{"ten thousand cookies", "HTTP/1.1 200 OK\r\n" + many.String(), "", maxCookies},
	} {
		var p ResponseParser
		p.Begin(false)
		p.KeepSession(false)
		if _, whole, err := p.Feed([]byte(c.head + end)); err != nil || !whole {
			t.Errorf("%s: %v, %v", c.why, whole, err)
			continue
		}
		if p.SessionInfo == nil || p.SessionInfo.Location != c.location || len(p.SessionInfo.SetCookie) != c.cookies {
			t.Errorf("%s: %.200v", c.why, p.SessionInfo)
		}
	}
}

func TestNobodyPaysForWhatNobodyAsks(t *testing.T) {
	answer := []byte("HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: a=1\r\nContent-Length: 2\r\n\r\nok")
	var p ResponseParser
	allocations := testing.AllocsPerRun(100, func() {
		p.Begin(false)
		_, _, _ = p.Feed(answer)
	})
	if allocations > 0 || p.SessionInfo != nil {
		t.Errorf("%v allocations, %v", allocations, p.SessionInfo)
	}
	p.Begin(false)
	p.KeepSession(false)
	_, _, _ = p.Feed(answer)
	p.Begin(false)
	if _, _, _ = p.Feed(answer); p.SessionInfo != nil {
		t.Error("it was asked once, and tells twice")
	}
}

func TestACookieGoesOutUnlessTheUserHasOne(t *testing.T) {
	request := &Request{Method: "GET", Target: "/", Cookie: "a=1; b=2"}
	for _, c := range []struct {
		why, own string
		want     bool
	}{
		{"a member", "", true},
		{"the user's own header takes its place", "Cookie: c=3", false},
		{"or removes it", "Cookie:", false},
	} {
		var lines []string
		if c.own != "" {
			lines = []string{c.own}
		}
		own, _ := ParseHeaders(lines)
		if text := string(request.AppendHTTP1(nil, "site", own)); strings.Contains(text, "\r\nCookie: a=1; b=2\r\n") != c.want {
			t.Errorf("%s: %q", c.why, text)
		}
	}
}
