package accesslog

import "bytes"

// Request is one logged request. Its byte slices are views into the line, or into scratch space of the parser that
// is good until the next call of Parse or, for requests of a Batch, until Batch.Release.
type Request struct {
	// TimeNS is the logged instant in nanoseconds since the Unix epoch, UTC offset applied, fraction kept.
	TimeNS int64
	// DurationNS is how long the server took, in nanoseconds; -1 where the log does not say.
	DurationNS int64
	// Bytes is the size of the response as logged, in bytes; -1 where the format has no %b. A %b of "-" is 0.
	Bytes int64
	// BodyBytes is the length of the request's body as its headers had it, in bytes; -1 where the log does not say.
	BodyBytes int64
	// Line is the line's number in its file, from 1. Read sets it; Parse leaves it alone.
	Line uint64
	// File is the file's index in the Source. Read sets it; Parse leaves it alone.
	File int
	// OffsetS is the UTC offset that the timestamp was logged with, in seconds east.
	OffsetS int32
	// Status is the HTTP status; 0 where the log does not say.
	Status uint16

	// Host is the client's address or name; VHost the host that was asked for. Method is as it was sent. Target is
	// the raw request target with its query: a request line that is not method, target and protocol is all target,
	// and Method is then nil. Protocol is HTTP/1.0, HTTP/1.1, HTTP/2 or HTTP/3. User is who the server had authenticated.
	// A field that the log lacks is nil.
	Host, VHost, User, Method, Target, Protocol, Referer, UserAgent []byte
	// URLHost is the host of a Target that was an absolute URL. Each sets it; Parse leaves Target as it is.
	URLHost []byte
	// Body is the request's body, and BodyType its content type, where the log is a recording. Both may hold secrets.
	Body, BodyType []byte
}

func (r *Request) reset() {
	line, file := r.Line, r.File
	*r = Request{} // in place: with its fields in the literal it would be made elsewhere and copied
	r.DurationNS, r.Bytes, r.BodyBytes, r.Line, r.File = -1, -1, -1, line, file
}

// toOrigin makes a target that is an absolute URL, as Squid and varnishncsa log it, what a server is asked for: a path
// (RFC 9112, 3.2.1). Its host is kept, without what a Host header has not: a user, and the scheme's own port.
func (r *Request) toOrigin() {
	if len(r.Target) == 0 || r.Target[0] == '/' {
		return
	}
	for _, scheme := range [...]struct{ begins, port string }{{"http://", ":80"}, {"https://", ":443"}} {
		n := len(scheme.begins)
		if len(r.Target) < n || !bytes.EqualFold(r.Target[:n], []byte(scheme.begins)) {
			continue
		}
		host, path := r.Target[n:], []byte(nil)
		if end := bytes.IndexAny(host, "/?#"); end >= 0 {
			host, path = host[:end], host[end:]
		}
		if len(path) == 0 || path[0] != '/' {
			path = append([]byte{'/'}, path...)
		}
		host = host[bytes.LastIndexByte(host, '@')+1:]
		r.Target, r.URLHost = path, bytes.TrimSuffix(host, []byte(scheme.port))
		return
	}
}
