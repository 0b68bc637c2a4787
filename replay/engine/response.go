package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// errBadResponse says that what the server sent is no HTTP/1.x response.
var errBadResponse = errors.New("not an HTTP response")

// errClosedEarly says that the server closed before the response was whole.
var errClosedEarly = errors.New("closed before the response was whole")

const (
	readBufferBytes = 4 << 10
	maxHeadBytes    = 1 << 20 // all of status line and headers
	drainBytes      = 64 << 10
)

// response is what the engine wants to know of an answer.
type response struct {
	status    int
	bytes     int64 // of the body, as they came (a chunked body's content, not its framing)
	keepAlive bool  // whether the connection may carry another request
	version   validator
}

// reader reads HTTP/1.x responses (RFC 9112) from a connection, keeping nothing of them but the counts.
type reader struct {
	src       io.Reader
	buf       []byte
	r, w      int
	headBytes int
}

func newReader(src io.Reader) *reader { return &reader{src: src, buf: make([]byte, readBufferBytes)} }

// wait returns when there is at least one byte to read. After an error it may be called again.
func (rd *reader) wait() error {
	if rd.r < rd.w {
		return nil
	}
	return rd.fill()
}

// fill reads more into the buffer, which grows up to maxHeadBytes when it is full.
func (rd *reader) fill() error {
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
func (rd *reader) line() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(rd.buf[rd.r+searched:rd.w], '\n'); i >= 0 {
			line := rd.buf[rd.r : rd.r+searched+i]
			rd.r += searched + i + 1
			rd.headBytes += len(line) + 1
			if rd.headBytes > maxHeadBytes {
				return nil, fmt.Errorf("%w: its head is over %d bytes", errBadResponse, maxHeadBytes)
			}
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
			return line, nil
		}
		searched = rd.w - rd.r
		if rd.headBytes+searched > maxHeadBytes {
			return nil, fmt.Errorf("%w: its head is over %d bytes", errBadResponse, maxHeadBytes)
		}
		if err := rd.fill(); err != nil {
			return nil, early(err)
		}
	}
}

// early tells the end of the stream inside a response from other errors.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		return errClosedEarly
	}
	return err
}

// head is what the status line and the headers say.
type head struct {
	status   int
	minor    byte  // of HTTP/1.minor
	length   int64 // Content-Length; −1 none
	chunked  bool
	close    bool
	keep     bool
	version  validator
	conflict bool // both lengths given: the connection is not to be trusted after this (RFC 9112, 6.3)
}

// response reads one response; toHEAD says that it answers a HEAD request and so has no body. On an error the counts
// are what had come until then.
func (rd *reader) response(toHEAD bool) (response, error) {
	var out response
	var h head
	for {
		var err error
		if h, err = rd.head(); err != nil {
			return out, err
		}
		out.status = h.status
		if h.status >= 200 || h.status == 101 {
			break
		}
	}
	out.version = h.version
	out.keepAlive = !h.close && !h.conflict && h.status != 101 && (h.minor >= 1 || h.keep)
	var err error
	switch {
	case toHEAD || h.status == 204 || h.status == 304 || h.status == 101:
	case h.chunked:
		out.bytes, err = rd.chunks()
	case h.length >= 0:
		out.bytes, err = rd.drain(h.length)
	default:
		out.keepAlive = false
		out.bytes, err = rd.rest()
	}
	if rd.r != rd.w {
		out.keepAlive = false // more than was asked for: whose answer would that be?
	}
	return out, err
}

func (rd *reader) head() (head, error) {
	rd.headBytes = 0
	h := head{length: -1}
	line, err := rd.line()
	if err != nil {
		return h, err
	}
	if h.status, h.minor, err = statusLine(line); err != nil {
		return h, err
	}
	for {
		if line, err = rd.line(); err != nil {
			return h, err
		}
		if len(line) == 0 {
			h.conflict = h.chunked && h.length >= 0
			return h, nil
		}
		if err = h.field(line); err != nil {
			return h, err
		}
	}
}

// statusLine reads "HTTP/1.1 200 OK".
func statusLine(line []byte) (status int, minor byte, err error) {
	const shape = "HTTP/1.x nnn"
	bad := len(line) < len(shape) || string(line[:7]) != shape[:7] || line[8] != ' ' ||
		(len(line) > len(shape) && line[len(shape)] != ' ')
	if !bad {
		minor = line[7] - '0'
		status, err = strconv.Atoi(string(line[9:12]))
		bad = minor > 9 || err != nil || status < 100
	}
	if bad {
		return 0, 0, fmt.Errorf("%w: it begins with %.40q", errBadResponse, line)
	}
	return status, minor, nil
}

// field takes what matters from one header line.
func (h *head) field(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return fmt.Errorf("%w: header line %.40q has no colon", errBadResponse, line)
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	switch len(name) { // the cheapest way past the headers that do not matter
	case len("ETag"):
		if bytes.EqualFold(name, []byte("ETag")) {
			h.version.set(h.version.etag[:], &h.version.ne, value)
		}
	case len("Connection"):
		if bytes.EqualFold(name, []byte("Connection")) {
			h.close = h.close || hasToken(value, "close")
			h.keep = h.keep || hasToken(value, "keep-alive")
		}
	case len("Last-Modified"):
		if bytes.EqualFold(name, []byte("Last-Modified")) {
			h.version.set(h.version.modified[:], &h.version.nm, value)
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			n, ok := decimal(value)
			if !ok || (h.length >= 0 && h.length != n) {
				return fmt.Errorf("%w: Content-Length %.40q", errBadResponse, value)
			}
			h.length = n
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			h.chunked = hasToken(value, "chunked")
		}
	}
	return nil
}

func decimal(b []byte) (int64, bool) {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<62)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}

func hasToken(list []byte, token string) bool {
	if len(list) < len(token) {
		return false
	}
	for part := range bytes.SplitSeq(list, []byte{','}) {
		if bytes.EqualFold(bytes.Trim(part, " \t"), []byte(token)) {
			return true
		}
	}
	return false
}

// chunks reads a chunked body and its trailers.
func (rd *reader) chunks() (int64, error) {
	var total int64
	for {
		rd.headBytes = 0
		line, err := rd.line()
		if err != nil {
			return total, err
		}
		size, ok := hexadecimal(line)
		if !ok {
			return total, fmt.Errorf("%w: chunk size %.40q", errBadResponse, line)
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
			return total, fmt.Errorf("%w: a chunk is longer than its size", errBadResponse)
		}
	}
}

func (rd *reader) trailers() error {
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
func (rd *reader) drain(n int64) (int64, error) {
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
			return done, early(err)
		}
	}
	return done, nil
}

// rest reads a body that ends with the connection.
func (rd *reader) rest() (int64, error) {
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
