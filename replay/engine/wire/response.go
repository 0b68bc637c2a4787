// A response: the parser of HTTP/1.x, and what is kept of an answer in any version.

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/net/http2"

	"plimsoll/replay/served"
)

// Response is what a replay keeps of an answer.
type Response struct {
	Status      int
	Bytes       int64 // of the body, as they came (a chunked body's content, not its framing)
	KeepAlive   bool  // the connection may carry another request
	Version     Validator
	Served      served.By
	SessionInfo *SessionInfo // nil unless KeepSession was called
}

// ErrBadResponse says that the server did not send an HTTP/1.x response.
var ErrBadResponse = errors.New("not an HTTP response")

// ErrClosedEarly says that the server closed before the response was whole.
var ErrClosedEarly = errors.New("closed before the response was whole")

// ResponseParser reads HTTP/1.x responses (RFC 9112) from bytes as they come. It keeps nothing of them but the counts,
// and a line that has not ended yet.
type ResponseParser struct {
	Response           // as far as it has come
	Software *Software // takes what the server calls itself; nil: nobody asks

	toHEAD    bool
	keepsInfo bool // of the head, for a session
	keepsPage bool // and the body, where it is an HTML page
	state     parserState
	head      head
	left      int64 // of the body, or of a chunk
	headBytes int
	line      []byte
}

const (
	maxHeadBytes = 1 << 20 // all of status line and headers
	keptBytes    = 4 << 10 // of room for lines that come in pieces, kept from one to the next
)

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
	p.keepsInfo, p.keepsPage = false, false
}

// KeepSession has the parser keep what a session needs of the head of the response, and with page also the body of an
// HTML page. It is called after Begin.
func (p *ResponseParser) KeepSession(page bool) { p.keepsInfo, p.keepsPage = true, page }

// Feed takes what has come. It returns how many bytes belong to the response, and whether that is whole now.
func (p *ResponseParser) Feed(b []byte) (used int, whole bool, err error) {
	for rest := b; err == nil; {
		switch p.state {
		case complete:
			return len(b) - len(rest), true, nil
		case inRest:
			p.Bytes += int64(len(rest))
			p.SessionInfo.Keep(rest)
			return len(b), false, nil
		case inBody, inChunk:
			n := min(p.left, int64(len(rest)))
			p.Bytes += n
			p.left -= n
			p.SessionInfo.Keep(rest[:n])
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
			if line, rest, ended, err = p.cutLine(rest); err == nil && !ended {
				return len(b), false, nil
			}
			if err == nil {
				err = p.parseLine(line)
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

// cutLine returns the next line, without its end, and what comes after it. What has come of a line is kept until its end
// comes.
func (p *ResponseParser) cutLine(b []byte) (line, rest []byte, ended bool, err error) {
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

// parseLine parses a whole line.
func (p *ResponseParser) parseLine(line []byte) (err error) {
	switch p.state {
	case inStatusLine:
		p.head = head{length: -1, software: p.Software}
		if p.keepsInfo {
			p.head.info = &SessionInfo{wantsPage: p.keepsPage}
		}
		p.head.status, p.head.minor, err = parseStatusLine(line)
		p.state = inHeaders
	case inHeaders:
		if len(line) > 0 {
			return p.head.parseField(line)
		}
		p.endHead()
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

// endHead decides what follows a head: another one after an interim response, a body, or nothing.
func (p *ResponseParser) endHead() {
	h := &p.head
	p.headBytes = 0
	if h.status < 200 && h.status != 101 {
		p.state = inStatusLine
		return
	}
	conflict := h.chunked && h.length >= 0 // the connection is not to be trusted after this (RFC 9112, 6.3)
	p.Status, p.Version, p.Served, p.SessionInfo = h.status, h.version, h.caches.By(), h.info
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

// head is what the status line and the headers say.
type head struct {
	status  int
	minor   byte  // of HTTP/1.minor
	length  int64 // Content-Length; −1 none
	chunked bool
	close   bool
	keep    bool
	version Validator
	caches  served.Headers

	info     *SessionInfo // nil: nobody asks, as below
	software *Software
}

// parseStatusLine reads "HTTP/1.1 200 OK".
func parseStatusLine(line []byte) (status int, minor byte, err error) {
	const shape = "HTTP/1.x nnn"
	bad := len(line) < len(shape) || string(line[:7]) != shape[:7] || line[8] != ' ' ||
		(len(line) > len(shape) && line[len(shape)] != ' ')
	if !bad {
		minor = line[7] - '0'
		status, err = strconv.Atoi(string(line[9:12]))
		bad = minor > 9 || err != nil || status < 100
	}
	if bad {
		return 0, 0, fmt.Errorf("%w: it begins with %.40q", ErrBadResponse, line)
	}
	return status, minor, nil
}

// parseField takes what matters from one header line.
func (h *head) parseField(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return fmt.Errorf("%w: header line %.40q has no colon", ErrBadResponse, line)
	}
	name, value := line[:colon], trim(line[colon+1:])
	if h.info != nil {
		h.info.takeHeader(name, value)
	}
	served.Take(&h.caches, name, value)
	switch len(name) { // the cheapest way past the headers that do not matter
	case len("ETag"):
		if bytes.EqualFold(name, []byte("ETag")) {
			h.version.setETag(value)
		}
	case len("Server"):
		if h.software != nil && h.status < firstError && bytes.EqualFold(name, []byte("Server")) {
			h.software.server.note(value)
		}
	case len("X-Powered-By"):
		if h.software != nil && h.status < firstError && bytes.EqualFold(name, []byte("X-Powered-By")) {
			h.software.poweredBy.note(value)
		}
	case len("Connection"):
		if bytes.EqualFold(name, []byte("Connection")) {
			h.close = h.close || hasToken(value, "close")
			h.keep = h.keep || hasToken(value, "keep-alive")
		}
	case len("Last-Modified"):
		if bytes.EqualFold(name, []byte("Last-Modified")) {
			h.version.setModified(value)
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			n, ok := decimal(value)
			if !ok || (h.length >= 0 && h.length != n) {
				return fmt.Errorf("%w: Content-Length %.40q", ErrBadResponse, value)
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

// trim takes away spaces and tabs on both sides; bytes.Trim takes three times as long.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
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
		if bytes.EqualFold(trim(part), []byte(token)) {
			return true
		}
	}
	return false
}

// Bounds of what is kept of one answer. Browsers keep no larger cookies either.
const (
	maxInfoBytes = 8 << 10
	maxCookies   = 64
)

// SessionInfo is what an answer holds for a client that keeps cookies. It comes from the site: callers trust nothing in
// it.
type SessionInfo struct {
	Location  string
	SetCookie []string
	Page      []byte // what came of an HTML page, packed as Coding says; nil: none was wanted, or it is too long
	Coding    string

	wantsPage bool // and the answer may be one
}

// maxPageBytes bounds what is kept of a page, packed as it came.
const maxPageBytes = 1 << 20

// Keep keeps a part of the body, where the answer is a page that is wanted. Nil keeps nothing.
func (t *SessionInfo) Keep(b []byte) {
	switch {
	case t == nil || !t.wantsPage:
	case len(t.Page)+len(b) > maxPageBytes:
		t.Page, t.wantsPage = nil, false
	default:
		t.Page = append(t.Page, b...)
	}
}

// takeHeader keeps a header, if it is one of these, within bounds and without control characters.
func (t *SessionInfo) takeHeader(name, value []byte) {
	if len(value) > maxInfoBytes || !isFieldValue(value) {
		return
	}
	switch {
	case bytes.EqualFold(name, []byte("Location")):
		t.Location = string(value)
	case bytes.EqualFold(name, []byte("Set-Cookie")) && len(t.SetCookie) < maxCookies:
		t.SetCookie = append(t.SetCookie, string(value))
	case bytes.EqualFold(name, []byte("Content-Encoding")):
		t.Coding = string(value)
	case bytes.EqualFold(name, []byte("Content-Type")):
		t.wantsPage = t.wantsPage && hasPrefixFold(value, "text/html")
	}
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}

// HTTP2Session returns what the headers of an HTTP/2 response hold for a session. With page, an HTML page is kept as it
// comes.
func HTTP2Session(f *http2.MetaHeadersFrame, page bool) *SessionInfo {
	info := &SessionInfo{wantsPage: page}
	for _, field := range f.RegularFields() {
		info.takeHeader([]byte(field.Name), []byte(field.Value))
	}
	return info
}

// Validator holds the Last-Modified and ETag of a response. Its arrays keep it free of pointers.
type Validator struct {
	modified [32]byte
	etag     [64]byte
	nm, ne   uint8
}

// Empty reports whether the response had neither header.
func (v *Validator) Empty() bool { return v.nm == 0 && v.ne == 0 }

func (v *Validator) lastModified() string { return string(v.modified[:v.nm]) }

func (v *Validator) entityTag() string { return string(v.etag[:v.ne]) }

func (v *Validator) setModified(value []byte) { keepValue(v.modified[:], &v.nm, value) }

func (v *Validator) setETag(value []byte) { keepValue(v.etag[:], &v.ne, value) }

// keepValue copies a header's value into an array if it fits and can be sent back.
func keepValue(into []byte, length *uint8, value []byte) {
	if len(value) <= len(into) && isFieldValue(value) {
		*length = uint8(copy(into, value))
	}
}

// TakeHTTP2 takes the headers of an HTTP/2 response, which has this status. Software is nil where nobody asks.
func (r *Response) TakeHTTP2(f *http2.MetaHeadersFrame, status int, software *Software) {
	r.Status, r.Version = status, Validator{}
	var caches served.Headers
	for _, field := range f.RegularFields() {
		served.Take(&caches, field.Name, field.Value)
		switch field.Name {
		case "etag":
			r.Version.setETag([]byte(field.Value))
		case "last-modified":
			r.Version.setModified([]byte(field.Value))
		case "server":
			if software != nil && status < firstError {
				software.server.note([]byte(field.Value))
			}
		case "x-powered-by":
			if software != nil && status < firstError {
				software.poweredBy.note([]byte(field.Value))
			}
		}
	}
	r.Served = caches.By()
}
