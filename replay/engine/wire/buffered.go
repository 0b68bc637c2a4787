package wire

import (
	"errors"
	"io"
)

// A loop that waits for many sockets reads what has come and cannot wait for the rest. It reads into Space, and Take
// says with ErrNotYet that the response is not whole.

// ErrNotYet means that a response is not whole yet.
var ErrNotYet = errors.New("not yet")

// Reset forgets what was read; a new response may follow.
func (rd *ResponseReader) Reset() { rd.r, rd.w = 0, 0 }

// Space returns room for what comes next; nil where the buffer holds limit bytes already.
func (rd *ResponseReader) Space(limit int) []byte {
	// One byte stays free, so that the reader never shifts what it may have to read again.
	if rd.w+1 >= len(rd.buf) {
		if len(rd.buf) >= limit {
			return nil
		}
		rd.buf = append(rd.buf, make([]byte, 3*len(rd.buf))...)
	}
	return rd.buf[rd.w : len(rd.buf)-1]
}

// Take reads a response from all that has come, of which the last n bytes were read into Space. Its error is ErrNotYet
// where more is needed.
func (rd *ResponseReader) Take(n int, toHEAD bool) (Response, error) {
	rd.w += n
	have := rd.w
	resp, err := rd.Finish(notYet{}, toHEAD)
	if err == ErrNotYet {
		rd.r, rd.w = 0, have
	}
	return resp, err
}

// Finish reads a response from all that has come, and what is missing from src.
func (rd *ResponseReader) Finish(src io.Reader, toHEAD bool) (Response, error) {
	rd.src = src
	return rd.Response(toHEAD)
}

// notYet is the source of a reader that has only what has come so far.
type notYet struct{}

func (notYet) Read([]byte) (int, error) { return 0, ErrNotYet }
