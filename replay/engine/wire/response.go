package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ErrBadResponse says that the server did not send an HTTP/1.x response.
var ErrBadResponse = errors.New("not an HTTP response")

// ErrClosedEarly says that the server closed before the response was whole.
var ErrClosedEarly = errors.New("closed before the response was whole")

const (
	maxHeadBytes = 1 << 20 // all of status line and headers
	keptBytes    = 4 << 10 // of room for lines that come in pieces, kept from one to the next
)

// Response is what a replay keeps of an answer.
type Response struct {
	Status    int
	Bytes     int64 // of the body, as they came (a chunked body's content, not its framing)
	KeepAlive bool  // the connection may carry another request
	Version   Validator
	Told      *Told // nil unless it was asked for
}

// ResponseParser reads HTTP/1.x responses (RFC 9112) from bytes as they come. It keeps nothing of them but the counts,
// and a line that has not ended yet.
type ResponseParser struct {
	Response // as far as it has come

	toHEAD    bool
	asked     bool // what the head tells is kept
	askedPage bool // and the body, where it is a page
	state     parserState
	head      head
	left      int64 // of the body, or of a chunk
	headBytes int
	line      []byte
}

type parserState uint8

const (
	inStatusLine parserState = iota
	inHeaders
	inBody
	inRest // a body that ends with the connection
	inChunkSize
	inChunk
	inChunkEnd
	inTrailers
	complete
)

// Begin expects a response; toHEAD means that it answers a HEAD request and so has no body.
func (p *ResponseParser) Begin(toHEAD bool) {
	p.Response = Response{}
	p.toHEAD, p.state, p.headBytes, p.line = toHEAD, inStatusLine, 0, p.line[:0]
	p.asked, p.askedPage = false, false
}

// AskTold has the parser keep what the head of the response tells, and with page also the body of an HTML page. It is
// called after Begin.
func (p *ResponseParser) AskTold(page bool) { p.asked, p.askedPage = true, page }

// Feed takes what has come. It returns how many bytes belong to the response, and whether that is whole now.
func (p *ResponseParser) Feed(b []byte) (used int, whole bool, err error) {
	for rest := b; err == nil; {
		switch p.state {
		case complete:
			return len(b) - len(rest), true, nil
		case inRest:
			p.Bytes += int64(len(rest))
			p.Told.Keep(rest)
			return len(b), false, nil
		case inBody, inChunk:
			n := min(p.left, int64(len(rest)))
			p.Bytes += n
			p.left -= n
			p.Told.Keep(rest[:n])
			rest = rest[n:]
			if p.left > 0 {
				return len(b), false, nil
			}
			if p.state = complete; p.head.chunked {
				p.state = inChunkEnd
			}
		default:
			var line []byte
			var ended bool
			if line, rest, ended, err = p.cut(rest); err == nil && !ended {
				return len(b), false, nil
			}
			if err == nil {
				err = p.take(line)
				p.line = p.line[:0]
				if cap(p.line) > keptBytes {
					p.line = nil
				}
			}
		}
	}
	return 0, false, err
}

// End tells that the server has closed. It returns an error where the response is not whole with that.
func (p *ResponseParser) End() error {
	if p.state == inRest || p.state == complete {
		p.state = complete
		return nil
	}
	return ErrClosedEarly
}

// cut returns the next line, without its end, and what comes after it. What has come of a line is kept until its end
// comes.
func (p *ResponseParser) cut(b []byte) (line, rest []byte, ended bool, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		i = len(b) - 1
	} else {
		ended = true
	}
	if p.headBytes += i + 1; p.headBytes > maxHeadBytes {
		return nil, nil, false, fmt.Errorf("%w: its head is over %d bytes", ErrBadResponse, maxHeadBytes)
	}
	line, rest = b[:i+1], b[i+1:]
	if len(p.line) > 0 || !ended {
		p.line = append(p.line, line...)
		line = p.line
	}
	if ended {
		line = bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
	}
	return line, rest, ended, nil
}

// take parses a whole line.
func (p *ResponseParser) take(line []byte) (err error) {
	switch p.state {
	case inStatusLine:
		p.head = head{length: -1}
		if p.asked {
			p.head.told = &Told{wantsPage: p.askedPage}
		}
		p.head.status, p.head.minor, err = statusLine(line)
		p.state = inHeaders
	case inHeaders:
		if len(line) > 0 {
			return p.head.field(line)
		}
		p.headEnded()
	case inChunkSize:
		size, ok := hexadecimal(line)
		if !ok {
			return fmt.Errorf("%w: chunk size %.40q", ErrBadResponse, line)
		}
		if p.left, p.state = size, inChunk; size == 0 {
			p.state = inTrailers
		}
		p.headBytes = 0
	case inChunkEnd:
		if len(line) > 0 {
			return fmt.Errorf("%w: a chunk is longer than its size", ErrBadResponse)
		}
		p.state = inChunkSize
	case inTrailers:
		if len(line) == 0 {
			p.state = complete
		}
	}
	return err
}

// headEnded decides what follows a head: another one after an interim response, a body, or nothing.
func (p *ResponseParser) headEnded() {
	h := &p.head
	p.headBytes = 0
	if h.status < 200 && h.status != 101 {
		p.state = inStatusLine
		return
	}
	conflict := h.chunked && h.length >= 0 // the connection is not to be trusted after this (RFC 9112, 6.3)
	p.Status, p.Version, p.Told = h.status, h.version, h.told
	p.KeepAlive = !h.close && !conflict && h.status != 101 && (h.minor >= 1 || h.keep)
	switch {
	case p.toHEAD || h.status == 204 || h.status == 304 || h.status == 101:
		p.state = complete
	case h.chunked:
		p.state = inChunkSize
	case h.length > 0:
		p.state, p.left = inBody, h.length
	case h.length == 0:
		p.state = complete
	default:
		p.state, p.KeepAlive = inRest, false
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

// Early turns the end of the stream inside a response into ErrClosedEarly, and leaves other errors as they are.
func Early(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrClosedEarly
	}
	return err
}
