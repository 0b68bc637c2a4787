// Package wire knows how HTTP looks on the wire: it writes requests, and reads from responses what a replay counts. It
// opens no connections and has no clock; bytes go in and come out.
package wire

import (
	"strconv"
	"strings"
	"time"
)

// Protocol is the version of HTTP that the log names.
type Protocol uint8

// The protocols that the engine tells apart. HTTP/3 in a log is replayed as HTTP/2, its closest relative over TCP.
const (
	HTTP11 Protocol = iota
	HTTP10
	HTTP2
)

// ParseProtocol reads a log's protocol; anything unknown, and nothing, is HTTP/1.1.
func ParseProtocol(s []byte) Protocol {
	switch {
	case len(s) < len("HTTP/x"):
		return HTTP11
	case s[5] == '2' || s[5] == '3':
		return HTTP2
	case string(s[5:]) == "1.0" || s[5] == '0':
		return HTTP10
	}
	return HTTP11
}

// Request is one request as it is sent. Its strings are as they are on the wire: the log's escapes are undone.
type Request struct {
	Method, Target           string
	Host, UserAgent, Referer string // empty: the target's own host; none; none
	Proto                    Protocol
	// IfModifiedSince is set for a logged 304, which should be one again. A validator that the server sent takes precedence.
	IfModifiedSince time.Time
	ClientIP        string // address of the log's client, for the headers that name it; empty: none
	Cookie          string // of a member; none for guests
	Body, BodyType  string // what it carries, and the content type of that
	RangeBytes      int64  // > 0 for a logged 206: asks for this many bytes from the start

	modified, etag string // the validator to send back; see Revalidate
}

// IsPath reports whether the target can be the :path of HTTP/2 (RFC 9113, 8.3.1).
func (r *Request) IsPath() bool { return r.Target[0] == '/' || r.Target == "*" }

// Revalidate makes the request ask whether the version that the validator names is still good.
func (r *Request) Revalidate(v Validator) { r.modified, r.etag = v.lastModified(), v.entityTag() }

// acceptEncoding is what browsers have sent for years; a server that compresses is to do that work here too.
const acceptEncoding = "gzip, deflate, br"

// httpDate is the format of If-Modified-Since (RFC 9110, 5.6.7).
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// fields calls field for each header of the request but Host, in the order in which browsers send them.
func (r *Request) fields(own *Headers, field func(name, value string)) {
	add := func(name, value string) {
		if value != "" && !own.Sets(name) {
			field(name, value)
		}
	}
	add("User-Agent", r.UserAgent)
	add("Accept", "*/*")
	add("Referer", r.Referer)
	if r.Body != "" {
		add("Content-Type", r.BodyType)
	}
	add("Accept-Encoding", acceptEncoding)
	switch {
	case r.modified != "" || r.etag != "":
		add("If-None-Match", r.etag)
		add("If-Modified-Since", r.modified)
	case !r.IfModifiedSince.IsZero():
		add("If-Modified-Since", r.IfModifiedSince.UTC().Format(httpDate))
	}
	if r.RangeBytes > 0 {
		add("Range", "bytes=0-"+strconv.FormatInt(r.RangeBytes-1, 10))
	}
	add("Cookie", r.Cookie)
	for _, name := range own.client {
		add(name, r.ClientIP)
	}
	for _, h := range own.list {
		if h.value != "" {
			field(h.name, h.value)
		}
	}
}

// Authority returns the host of the request: the user's own, else the log's, else the target's, which is site.
func (r *Request) Authority(site string, own *Headers) string {
	switch {
	case own.host != "":
		return own.host
	case r.Host != "":
		return r.Host
	}
	return site
}

// AppendHTTP1 appends the whole request in the format of HTTP/1.x. A method other than GET and HEAD has a body, if it is
// an empty one. site is the target's host.
func (r *Request) AppendHTTP1(b []byte, site string, own *Headers) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	if r.Proto == HTTP10 {
		b = append(b, " HTTP/1.0\r\nHost: "...)
	} else {
		b = append(b, " HTTP/1.1\r\nHost: "...)
	}
	b = append(b, r.Authority(site, own)...)
	b = append(b, "\r\n"...)
	r.fields(own, func(name, value string) {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	})
	if r.Proto == HTTP10 {
		b = append(b, "Connection: close\r\n"...)
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, r.Body...)
}

// Reasons for not sending a request, as in summary.json under "skipped".
const (
	SkipMethod      = "method_not_allowed"
	SkipTarget      = "unsafe_target"
	SkipHeader      = "unsafe_header"
	SkipUnsendable2 = "unsendable_h2"
)

// Unsafe returns the reason why a request cannot be sent without becoming another one on the wire, or "". White space
// and control characters in a target end it early or begin a new line (RFC 9112, 3.2); in a header they begin a new one
// (5.5).
func (r *Request) Unsafe() string {
	switch {
	case !isToken(r.Method):
		return SkipMethod
	case r.Target == "" || !isVisible(r.Target) || r.Method == "CONNECT":
		return SkipTarget
	case !isHost(r.Host) || !isFieldValue(r.UserAgent) || !isFieldValue(r.Referer) || !isFieldValue(r.BodyType):
		return SkipHeader
	}
	return ""
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func isFieldValue[T string | []byte](s T) bool {
	for i := range len(s) {
		if (s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func isHost(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && strings.IndexByte("-._:[]%", c) < 0 {
			return false
		}
	}
	return true
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
