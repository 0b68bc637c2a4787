package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// head is what the status line and the headers say.
type head struct {
	status  int
	minor   byte  // of HTTP/1.minor
	length  int64 // Content-Length; −1 none
	chunked bool
	close   bool
	keep    bool
	version Validator
	told    *Told // nil: nobody asks
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
		return 0, 0, fmt.Errorf("%w: it begins with %.40q", ErrBadResponse, line)
	}
	return status, minor, nil
}

// field takes what matters from one header line.
func (h *head) field(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return fmt.Errorf("%w: header line %.40q has no colon", ErrBadResponse, line)
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	if h.told != nil {
		h.told.take(name, value)
	}
	switch len(name) { // the cheapest way past the headers that do not matter
	case len("ETag"):
		if bytes.EqualFold(name, []byte("ETag")) {
			h.version.setETag(value)
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
