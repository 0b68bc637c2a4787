// Package wire knows how HTTP looks on the wire: it writes requests, and reads from responses what a replay counts. It
// opens no connections and has no clock; bytes go in and come out.
package wire

import (
	"strconv"
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
		if value != "" && !own.replaces(name) {
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
