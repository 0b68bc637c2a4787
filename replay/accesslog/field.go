package accesslog

import (
	"bytes"
	"math"
)

const (
	whyNoDelimiter = "has no end: the delimiter that follows it in the format is missing"
	whyEmpty       = "is empty"
	whyYear        = "is before 1970 or after 2261: no server logged that"
)

// field reads the field of one specifier into r and returns where it ends. A reason means that the line is not
// valid; the end is then before pos if no delimiter was found.
func (f *Format) field(o *op, line []byte, pos int, r *Request) (next int, why string) {
	nth := 1
	switch o.kind {
	case opDate:
		nth = f.dateDelimiters(line[pos:])
	case opHost:
		if line[pos] == '[' { // RFC 3986, section 3.2.2
			return f.bracketedHost(o, line, pos+1, r)
		}
	}
	end, ok := f.token(o, line, pos, nth)
	if !ok {
		return f.noDelimiter(o, pos, r)
	}
	if o.list {
		end = listEnd(line, pos, end)
	}
	text := line[pos:min(end, len(line))]
	if o.kind == opBody { // white space belongs to it
		r.Body = absent(text)
		return end, ""
	}
	text = trimSpace(text)
	if o.quotes && len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	if o.kind == opVHost {
		text = wholeHost(text, line[pos:])
	}
	return end, f.value(o, text, r)
}

// listEnd returns where the list of times ends whose first is line[pos:end]: nginx writes one for each upstream that it
// asked, with ", " between them, and " : " between groups.
func listEnd(line []byte, pos, end int) int {
	for end > pos && end < len(line) {
		after := end + 1
		switch {
		case bytes.HasPrefix(line[end:], []byte(" : ")):
			after = end + 3
		case line[end-1] != ',':
			return end
		}
		next := bytes.IndexByte(line[after:], ' ')
		if next < 0 {
			return len(line)
		}
		end = after + next
	}
	return end
}

// noDelimiter deals with a field that has no end: for most specifiers the line is invalid.
func (f *Format) noDelimiter(o *op, pos int, r *Request) (next int, why string) {
	switch o.kind {
	case opReferer, opAgent:
		f.have.add(o.spec)
		return pos, ""
	case opQuery:
		return pos, ""
	}
	return pos - 1, whyNoDelimiter
}

// value takes the value of one specifier.
func (f *Format) value(o *op, b []byte, r *Request) (why string) {
	switch o.kind {
	case opDate, opTime, opDateTime:
		return f.timestamp(o, b)
	case opHost:
		return f.host(b, r)
	case opVHost:
		r.VHost = absent(b)
	case opUser:
		r.User = absent(b)
	case opRequest:
		f.request(b, r)
	case opMethod:
		n := methodLen(b)
		if n == 0 {
			return "is not a request method that goaccess knows"
		}
		r.Method = b[:n:n]
	case opURL:
		if len(b) == 0 {
			return whyEmpty
		}
		r.Target = b
		f.have.add('r')
	case opQuery:
		if len(b) == 0 {
			return ""
		}
		if !isDash(b) {
			f.query = b
		}
	case opProtocol:
		n := protocolLen(b)
		if n == 0 {
			return "is not a protocol that goaccess knows: HTTP/1.0, HTTP/1.1, HTTP/2, HTTP/3"
		}
		r.Protocol = b[:n:n]
	case opStatus:
		status, ok := parseUint(b)
		if !ok || (status < 100 || status > 599) && (status != 0 || !f.zeroStatus) {
			return "is not an HTTP status (100 to 599)"
		}
		r.Status = uint16(status)
	case opBytes:
		return f.bytes(o, b, r)
	case opReferer:
		r.Referer = absent(b)
	case opAgent:
		r.UserAgent = absent(b)
	case opDuration:
		r.DurationNS = parseDuration(b, durationUnit(o.spec))
		if r.DurationNS < 0 && o.toEnd { // another field may follow what the format knows
			first, _, _ := bytes.Cut(b, []byte{' '})
			r.DurationNS = parseDuration(first, durationUnit(o.spec))
		}
		if r.DurationNS > 0 {
			f.have.add('T')
		}
		return ""
	case opBodyType:
		r.BodyType = absent(b)
	case opBodyBytes:
		if n, ok := parseUint(b); ok && n <= math.MaxInt64 {
			r.BodyBytes = int64(n)
		}
	}
	f.have.add(o.spec)
	return ""
}

func (f *Format) bytes(o *op, b []byte, r *Request) (why string) {
	n, ok := parseUint(b)
	if !ok || n > math.MaxInt64 {
		n = 0
	}
	r.Bytes = int64(n)
	if n > 0 { // goaccess takes a later %b where this one is 0
		f.have.add(o.spec)
	}
	return ""
}

// timestamp takes a date, a time or both.
func (f *Format) timestamp(o *op, b []byte) (why string) {
	switch o.kind {
	case opDate:
		at, ok := f.scanner.date.read(&f.program.date, b)
		if !ok {
			return f.program.date.why
		}
		f.at.day, f.at.epoch = at.day, f.at.epoch || at.epoch
		if !f.have.has('t') || at.epoch {
			f.at.seconds, f.at.nanos = at.seconds, at.nanos
		}
		f.offset(at)
	case opTime:
		at, ok := f.scanner.clock.read(&f.program.time, b)
		if !ok {
			return f.program.time.why
		}
		if !f.at.epoch {
			f.at.seconds, f.at.nanos, f.at.epoch = at.seconds, at.nanos, at.epoch
		}
		f.offset(at)
	case opDateTime:
		var at timestamp
		if !f.program.dateTime.read(b, &at) {
			return f.program.dateTime.why
		}
		f.at = at
		f.have.add('d')
		f.have.add('t')
		return ""
	}
	f.have.add(o.spec)
	return ""
}

func (f *Format) offset(at *timestamp) {
	if at.offset {
		f.at.offset, f.at.offsetS = true, at.offsetS
	}
}

// dateDelimiters returns the number of the delimiter that ends a date: a date with spaces in it, as syslog writes them,
// may have two in a row before a day of one digit.
func (f *Format) dateDelimiters(b []byte) int {
	spaces := f.program.date.spaces
	if spaces == 0 {
		return 1
	}
	run := 0
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		for i < len(b) && isSpace(b[i]) {
			i, run = i+1, run+1
		}
	}
	return max(run, spaces) + 1
}

// request takes a request line apart. One that is not a known method, a target and a known protocol is all target;
// goaccess calls such a request "-" where it has the method.
func (f *Format) request(b []byte, r *Request) {
	f.have.add('r')
	r.Target = b
	n := methodLen(b)
	if n == 0 {
		return
	}
	last := bytes.LastIndexByte(b[n:], ' ')
	if last < 0 {
		return
	}
	space := n + last
	protocol := protocolLen(b[space+1:])
	if protocol == 0 || space == n {
		return
	}
	r.Method = b[:n:n]
	f.have.add('m')
	r.Protocol = b[space+1 : space+1+protocol : space+1+protocol]
	f.have.add('H')
	r.Target = trimSpace(b[n+1 : space+1])
}

// absent returns nil for the dash and the empty text that servers write in place of nothing.
func absent(b []byte) []byte {
	if len(b) == 0 || isDash(b) {
		return nil
	}
	return b
}

func isDash(b []byte) bool { return len(b) == 1 && b[0] == '-' }
