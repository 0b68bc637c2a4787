package engine

import (
	"strconv"
	"strings"
	"time"

	"plimsoll/replay/record"
)

// Protocol is the version of HTTP that the log names.
type Protocol uint8

// The protocols that the engine tells apart. HTTP/3 in a log is replayed as HTTP/2, its nearest kin over TCP.
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

// Request is what is to be sent, and what the log knows of how it went the first time. Its strings are as they
// go on the wire: the log's escapes are undone.
type Request struct {
	Method, Target           string
	Host, UserAgent, Referer string // empty: the target's own host; none; none
	Proto                    Protocol
	IfModifiedSince          time.Time // set for a logged 304, which is to be one again; a validator that the server sent goes before it
	RangeBytes               int64     // > 0 for a logged 206: that many first bytes are asked for
	Client                   uint32    // whose connections it uses
	Route                    uint16
	LoggedStatus             uint16
	LoggedBytes              int64
	Line                     uint64

	ifModifiedSince, ifNoneMatch string // validators of the target's last 200
}

// Reasons for not sending a request, as they stand in summary.json under "skipped".
const (
	SkipMethod      = "method_not_allowed"
	SkipTarget      = "unsafe_target"
	SkipHeader      = "unsafe_header"
	SkipUnsendable2 = "unsendable_h2"
	SkipCap         = "cap_reached"
)

// Unsafe says why a request cannot be sent without becoming another one on the wire, or "". White space and control
// characters in a target end it early or begin a new line (RFC 9112, 3.2); in a header they begin a new one (5.5).
func (r *Request) Unsafe() string {
	switch {
	case !isToken(r.Method):
		return SkipMethod
	case r.Target == "" || !isVisible(r.Target) || r.Method == "CONNECT":
		return SkipTarget
	case !isHost(r.Host) || !isFieldValue(r.UserAgent) || !isFieldValue(r.Referer):
		return SkipHeader
	}
	return ""
}

// path says whether the target can be the :path of HTTP/2 (RFC 9113, 8.3.1).
func (r *Request) path() bool { return r.Target[0] == '/' || r.Target == "*" }

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

// acceptEncoding is what browsers have sent for years; a server that compresses is to do that work here too.
const acceptEncoding = "gzip, deflate, br"

// httpDate is the format of If-Modified-Since (RFC 9110, 5.6.7).
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// fields calls field for each header of the request but Host, in the order in which browsers send them.
func (r *Request) fields(own *Headers, field func(name, value string)) {
	add := func(name, value string) {
		if value != "" && !own.replaces(name) {
			field(name, value)
		}
	}
	add("User-Agent", r.UserAgent)
	add("Accept", "*/*")
	add("Referer", r.Referer)
	add("Accept-Encoding", acceptEncoding)
	switch {
	case r.ifModifiedSince != "" || r.ifNoneMatch != "":
		add("If-None-Match", r.ifNoneMatch)
		add("If-Modified-Since", r.ifModifiedSince)
	case !r.IfModifiedSince.IsZero():
		add("If-Modified-Since", r.IfModifiedSince.UTC().Format(httpDate))
	}
	if r.RangeBytes > 0 {
		add("Range", "bytes=0-"+strconv.FormatInt(r.RangeBytes-1, 10))
	}
	for _, h := range own.list {
		if h.value != "" {
			field(h.name, h.value)
		}
	}
}

// appendHTTP1 appends the whole request as HTTP/1.x wants it. A method other than GET and HEAD has an empty body.
func (r *Request) appendHTTP1(b []byte, target *Target, own *Headers) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	if r.Proto == HTTP10 {
		b = append(b, " HTTP/1.0\r\nHost: "...)
	} else {
		b = append(b, " HTTP/1.1\r\nHost: "...)
	}
	b = append(b, r.host(target, own)...)
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
		b = append(b, "Content-Length: 0\r\n"...)
	}
	return append(b, "\r\n"...)
}

func (r *Request) host(target *Target, own *Headers) string {
	switch {
	case own.host != "":
		return own.host
	case r.Host != "":
		return r.Host
	}
	return target.Host
}

// Shot is one request with its due instant, and what the engine measures of it. A shot is used once.
type Shot struct {
	Request
	DueNS int64 // since the start of the run

	startNS, firstNS int64 // firstNS 0: no byte came
	connectUS, tlsUS uint32
	flags            record.Flags
	retried          bool
	after            func(s *Shot, doneNS int64) // what a closed loop does next
}
