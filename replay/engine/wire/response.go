package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// ErrBadResponse says that what the server sent is no HTTP/1.x response.
var ErrBadResponse = errors.New("not an HTTP response")

// ErrClosedEarly says that the server closed before the response was whole.
var ErrClosedEarly = errors.New("closed before the response was whole")

const (
	bufferBytes  = 4 << 10
	maxHeadBytes = 1 << 20 // all of status line and headers
	drainBytes   = 64 << 10
)

// Response is what a replay keeps of an answer.
type Response struct {
	Status    int
	Bytes     int64 // of the body, as they came (a chunked body's content, not its framing)
	KeepAlive bool  // the connection may carry another request
	Version   Validator
}

// ResponseReader reads HTTP/1.x responses (RFC 9112) from a connection, keeping nothing of them but the counts.
type ResponseReader struct {
	src       io.Reader
	buf       []byte
	r, w      int
	headBytes int
}

func NewResponseReader(src io.Reader) *ResponseReader {
	return &ResponseReader{src: src, buf: make([]byte, bufferBytes)}
}

// Wait returns when there is at least one byte to read. After an error it may be called again.
func (rd *ResponseReader) Wait() error {
	if rd.r < rd.w {
		return nil
	}
	return rd.fill()
}

// fill reads more into the buffer, which grows up to maxHeadBytes when it is full.
func (rd *ResponseReader) fill() error {
	if rd.r == rd.w {
		rd.r, rd.w = 0, 0
	}
	if rd.w == len(rd.buf) {
		if rd.r > 0 {
			rd.w = copy(rd.buf, rd.buf[rd.r:rd.w])
			rd.r = 0
		} else {
			rd.buf = append(rd.buf, make([]byte, len(rd.buf))...)
		}
	}
	n, err := rd.src.Read(rd.buf[rd.w:])
	rd.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// line returns the next line without its end; it is valid until the next read.
func (rd *ResponseReader) line() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(rd.buf[rd.r+searched:rd.w], '\n'); i >= 0 {
			line := rd.buf[rd.r : rd.r+searched+i]
			rd.r += searched + i + 1
			rd.headBytes += len(line) + 1
			if rd.headBytes > maxHeadBytes {
				return nil, fmt.Errorf("%w: its head is over %d bytes", ErrBadResponse, maxHeadBytes)
			}
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
			return line, nil
		}
		searched = rd.w - rd.r
		if rd.headBytes+searched > maxHeadBytes {
			return nil, fmt.Errorf("%w: its head is over %d bytes", ErrBadResponse, maxHeadBytes)
		}
		if err := rd.fill(); err != nil {
			return nil, Early(err)
		}
	}
}

// Early turns the end of the stream inside a response into ErrClosedEarly, and leaves other errors as they are.
func Early(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrClosedEarly
	}
	return err
}

// Response reads one response; toHEAD means that it answers a HEAD request and so has no body. After an error, the
// counts are those of what had come until then.
func (rd *ResponseReader) Response(toHEAD bool) (Response, error) {
	var out Response
	var h head
	for {
		var err error
		if h, err = rd.head(); err != nil {
			return out, err
		}
		out.Status = h.status
		if h.status >= 200 || h.status == 101 {
			break
		}
	}
	out.Version = h.version
	out.KeepAlive = !h.close && !h.conflict && h.status != 101 && (h.minor >= 1 || h.keep)
	var err error
	switch {
	case toHEAD || h.status == 204 || h.status == 304 || h.status == 101:
	case h.chunked:
		out.Bytes, err = rd.chunks()
	case h.length >= 0:
		out.Bytes, err = rd.drain(h.length)
	default:
		out.KeepAlive = false
		out.Bytes, err = rd.rest()
	}
	if rd.r != rd.w {
		out.KeepAlive = false // more than was asked for: whose answer would that be?
	}
	return out, err
}

// chunks reads a chunked body and its trailers.
func (rd *ResponseReader) chunks() (int64, error) {
	var total int64
	for {
		rd.headBytes = 0
		line, err := rd.line()
		if err != nil {
			return total, err
		}
		size, ok := hexadecimal(line)
		if !ok {
			return total, fmt.Errorf("%w: chunk size %.40q", ErrBadResponse, line)
		}
		if size == 0 {
			return total, rd.trailers()
		}
		n, err := rd.drain(size)
		total += n
		if err != nil {
			return total, err
		}
		if line, err = rd.line(); err != nil {
			return total, err
		}
		if len(line) != 0 {
			return total, fmt.Errorf("%w: a chunk is longer than its size", ErrBadResponse)
		}
	}
}

func (rd *ResponseReader) trailers() error {
	for {
		line, err := rd.line()
		if err != nil || len(line) == 0 {
			return err
		}
	}
}

// hexadecimal reads a chunk size; extensions after it do not count.
func hexadecimal(line []byte) (int64, bool) {
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > 15 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(line), 16, 60)
	return int64(n), err == nil
}

// drain reads n bytes of a body and forgets them.
func (rd *ResponseReader) drain(n int64) (int64, error) {
	buffered := min(n, int64(rd.w-rd.r))
	rd.r += int(buffered)
	done := buffered
	if done == n {
		return done, nil
	}
	big := drains.Get().(*[drainBytes]byte)
	defer drains.Put(big)
	for done < n {
		got, err := rd.src.Read(big[:min(n-done, drainBytes)])
		done += int64(got)
		if err != nil && done < n {
			return done, Early(err)
		}
	}
	return done, nil
}

// rest reads a body that ends with the connection.
func (rd *ResponseReader) rest() (int64, error) {
	done := int64(rd.w - rd.r)
	rd.r = rd.w
	big := drains.Get().(*[drainBytes]byte)
	defer drains.Put(big)
	for {
		got, err := rd.src.Read(big[:])
		done += int64(got)
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
}

var drains = sync.Pool{New: func() any { return new([drainBytes]byte) }}
