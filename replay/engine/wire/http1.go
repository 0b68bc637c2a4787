package wire

import "strconv"

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
