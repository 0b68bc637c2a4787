package accesslog

// A line becomes a request, or the reason why it is not one. Nothing here allocates.

import (
	"bytes"
	"math"
)

// scanner is the scratch space of one parser. What it remembers of earlier lines only saves time: the result of a
// line depends on the line alone.
type scanner struct {
	have    fieldSet
	at      timestamp
	query   []byte
	arena   []byte // bytes of requests that are not in their lines
	date    memo
	clock   memo
	cut     bool // the line has a NUL, and ends there
	slashed bool // the line has a backslash
	reject  Mismatch
	json    jsonScanner
}

// fieldSet says which specifiers of a line have a value, by their letters.
type fieldSet uint64

func (f fieldSet) has(spec byte) bool { return f&(1<<(spec-'A')) != 0 }

func (f *fieldSet) add(spec byte) { *f |= 1 << (spec - 'A') }

// memo remembers the last date or time that was read: the next line mostly says the same.
type memo struct {
	text [32]byte
	n    int
	at   timestamp
}

func (m *memo) read(c *timeFormat, b []byte) (*timestamp, bool) {
	if m.n > 0 && string(b) == string(m.text[:m.n]) {
		return &m.at, true
	}
	m.n, m.at = 0, timestamp{}
	if !c.read(b, &m.at) {
		return nil, false
	}
	if len(b) <= len(m.text) {
		m.n = copy(m.text[:], b)
	}
	return &m.at, true
}

// Ignored reports whether a line does not count: it is empty or a comment.
func Ignored(line []byte) bool {
	return len(line) == 0 || line[0] == '#' || line[0] == '\n' || line[0] == 0
}

// Parse reads one line into r. It returns nil for a valid request, else why the line is not one; that Mismatch is good
// until the next call.
func (f *Format) Parse(line []byte, r *Request) *Mismatch {
	f.arena = f.arena[:0]
	return f.parse(line, r)
}

// parse does what Parse does, and keeps what is in the arena.
func (f *Format) parse(line []byte, r *Request) *Mismatch {
	r.reset()
	f.have, f.at, f.query = 0, timestamp{}, nil
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	f.cut, f.slashed = false, bytes.IndexByte(line, '\\') >= 0
	if n := bytes.IndexByte(line, 0); n >= 0 { // to goaccess, which is written in C, the line ends there
		line, f.cut = line[:n], true
	}
	var reject *Mismatch
	if f.keys != nil {
		reject = f.runJSON(line, r)
	} else {
		reject = f.run(f.ops, line, 0, r)
	}
	if reject != nil {
		return reject
	}
	return f.finish(line, r)
}

// finish checks what a request must have and puts together what stood apart.
func (f *Format) finish(line []byte, r *Request) *Mismatch {
	switch {
	case !f.have.has('h'):
		return f.refuse('h', len(line), "is missing: a request needs a client", nil)
	case !f.have.has('d'):
		return f.refuse('d', len(line), "is missing: a request needs a date", nil)
	case !f.have.has('r'):
		return f.refuse('r', len(line), "is missing: a line needs a request", nil)
	}
	if !f.at.representable() {
		return f.refuse('d', 0, whyYear, nil)
	}
	r.TimeNS, r.OffsetS = f.at.ns(f.location)
	if f.query != nil {
		f.join(r)
	}
	if r.Method == nil && f.method != "" {
		f.arena = append(f.arena, f.method...)
		r.Method = f.arena[len(f.arena)-len(f.method) : len(f.arena) : len(f.arena)]
	}
	if f.vhostIsLabel {
		r.VHost = nil
	}
	return nil
}

// join appends the query to the target, in the arena.
func (f *Format) join(r *Request) {
	start := len(f.arena)
	f.arena = append(f.arena, r.Target...)
	if f.query[0] != '?' {
		f.arena = append(f.arena, '?')
	}
	f.arena = append(f.arena, f.query...)
	r.Target = f.arena[start:len(f.arena):len(f.arena)]
}

func (f *Format) refuse(spec byte, pos int, why string, token []byte) *Mismatch {
	f.reject = Mismatch{Specifier: specifierNames[spec&127], Column: pos + 1, Why: why, Token: token}
	return &f.reject
}

// run runs a program over a line, or over one value of a JSON line that begins at byte base of it. A line may end
// between any two fields: what the rest of the format would have said is then missing. It may not end within one.
func (f *Format) run(ops []op, line []byte, base int, r *Request) *Mismatch {
	pos := 0
	for i := range ops {
		o := &ops[i]
		if pos >= len(line) {
			if pos == len(line) && !f.cut {
				return nil
			}
			return f.refuse(specBefore(ops[:i]), base+len(line), "has no end: the line ends in it", nil)
		}
		switch o.kind {
		case opLiteral:
			pos = min(pos+int(o.count), len(line))
		case opSpace:
			for pos < len(line) && isSpace(line[pos]) {
				pos++
			}
			if pos == len(line) {
				pos++ // the end of the line is white space too
			}
		case opSkip:
			pos = f.skip(o, line, pos)
		case opLack:
			f.reject = Mismatch{Specifier: fieldsPrefix, Column: 1, Why: o.set}
			return &f.reject
		case opForwarded:
			var why string
			if o.overrides {
				f.have &^= 1 << ('h' - 'A')
			}
			if pos, why = f.forwarded(o, line, pos, r); why != "" {
				return f.refuse('h', base+pos, why, line[pos:])
			}
		default:
			if f.repeated(o) {
				from := pos
				if pos = f.skip(o, line, pos); f.lastVHost && o.kind == opVHost {
					r.VHost = absent(trimSpace(line[from:pos]))
				}
				continue
			}
			next, why := f.field(o, line, pos, r)
			if why != "" {
				if next < pos {
					return f.refuse(o.spec, base+pos, why, line[pos:])
				}
				return f.refuse(o.spec, base+pos, why, trimSpace(line[pos:min(next, len(line))]))
			}
			pos = next
		}
	}
	return nil
}

// specBefore returns the last specifier of a program.
func specBefore(ops []op) byte {
	for i := len(ops) - 1; i >= 0; i-- {
		if ops[i].kind != opLiteral {
			return ops[i].spec
		}
	}
	return '^'
}

// repeated reports whether a specifier has its value already; goaccess then skips it as it does %^.
func (f *Format) repeated(o *op) bool {
	switch o.kind {
	case opDateTime:
		return f.have.has('d') && f.have.has('t')
	case opURL:
		return f.have.has('r')
	case opDuration:
		return f.have.has('T')
	case opHost:
		return f.have.has('h') && !o.overrides
	}
	return f.have.has(o.spec)
}

// skip moves to the next delimiter, or stays if none follows.
func (f *Format) skip(o *op, line []byte, pos int) int {
	end := len(line)
	if o.quotes {
		if end := quotedEnd(o, line, pos); end > pos {
			return end
		}
	}
	if !o.toEnd {
		n := bytes.IndexByte(line[pos:], o.delim)
		if n < 0 {
			return pos
		}
		end = pos + n
	}
	if o.afterTime {
		f.zone(o, line[pos:end])
	}
	return end
}

// zone looks for a fraction of a second and a UTC offset in what a format skips after a time.
func (f *Format) zone(o *op, skipped []byte) {
	b := trimSpace(skipped)
	if o.point {
		if rest, nanos, ok := scanFraction(b); ok {
			f.at.nanos, f.at.isFine, b = nanos, true, rest
		}
	}
	if rest, offsetS, ok := scanOffset(b); ok && len(rest) == 0 {
		f.at.offset, f.at.offsetS = true, offsetS
	}
}

// token finds the field that begins at pos: up to the nth delimiter, where a backslash takes the meaning from the
// character after it. There has to be a delimiter, but it may turn out to be escaped: then the field is the rest, and
// end is past the end of the line.
func (s *scanner) token(o *op, line []byte, pos, nth int) (end int, ok bool) {
	if o.toEnd {
		return len(line), true // nothing is left of the format
	}
	if o.quotes {
		if end := quotedEnd(o, line, pos); end > pos {
			return end, true
		}
	}
	b := line[pos:]
	n := bytes.IndexByte(b, o.delim)
	if n < 0 {
		return pos, false
	}
	if nth == 1 && (!s.slashed || bytes.IndexByte(b[:n], '\\') < 0) {
		return pos + n, true
	}
	for i, seen := 0, 0; i < len(b); i++ {
		if b[i] == o.delim {
			if seen++; seen == nth {
				return pos + i, true
			}
		}
		if b[i] == '\\' {
			i++
		}
	}
	return len(line) + 1, true
}

// quotedEnd returns where a field in quotes ends that begins at pos: behind the quote that a delimiter follows; 0 for none.
func quotedEnd(o *op, line []byte, pos int) int {
	if pos >= len(line) || line[pos] != '"' {
		return 0
	}
	for at := pos + 1; ; at++ {
		n := bytes.IndexByte(line[at:], '"')
		if n < 0 {
			return 0
		}
		if at += n; at+1 == len(line) || line[at+1] == o.delim {
			return at + 1
		}
	}
}

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
		if o.delim == ':' {
			if n := bareIPv6(line[pos:]); n > 0 {
				return pos + n, f.host(line[pos:pos+n:pos+n], r)
			}
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
		if o.hostFirst && b[0] != '/' && !bytes.Contains(b, []byte("://")) {
			at := max(0, bytes.IndexByte(b, '/'))
			b, r.VHost = b[at:], absent(b[:at])
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
			if isNone := len(b) == 0 || isDash(b); !f.zeroStatus || !(isNone && f.namesFields || string(b) == "-1") {
				return "is not an HTTP status (100 to 599)"
			}
			status = 0
		}
		r.Status = uint16(status)
	case opBytes:
		return f.bytes(o, b, r)
	case opReferer:
		r.Referer = absent(b)
	case opAgent:
		r.UserAgent = absent(b)
	case opDuration:
		unitNS := o.unitNS
		if o.pointed && bytes.IndexByte(b, '.') >= 0 {
			unitNS = 1e9
		}
		r.DurationNS = parseDuration(b, unitNS)
		if r.DurationNS < 0 && o.toEnd { // another field may follow what the format knows
			first, _, _ := bytes.Cut(b, []byte{' '})
			r.DurationNS = parseDuration(first, unitNS)
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

// methods are the request methods that goaccess knows; it compares them as prefixes, in this order, ignoring case.
var methods = [...]string{
	"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "PATCH",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "VERSION-CONTROL", "REPORT", "CHECKOUT",
	"CHECKIN", "UNCHECKOUT", "MKWORKSPACE", "UPDATE", "LABEL", "MERGE", "BASELINE-CONTROL", "MKACTIVITY", "ORDERPATCH",
}

// protocols are the protocols that goaccess knows, compared in the same way: HTTP/2.0 is HTTP/2.
var protocols = [...]string{"HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"}

// methodLen returns the length of the method that b begins with, or 0.
func methodLen(b []byte) int {
	if len(b) >= 4 && b[0] == 'G' && b[1] == 'E' && b[2] == 'T' {
		return 3
	}
	return knownPrefix(b, methods[:])
}

// protocolLen returns the length of the protocol that b begins with, or 0.
func protocolLen(b []byte) int { return knownPrefix(b, protocols[:]) }

func knownPrefix(b []byte, known []string) int {
	for _, name := range known {
		if hasPrefixFold(b, name) {
			return len(name)
		}
	}
	return 0
}

// hasPrefixFold reports whether b begins with upper, which is in upper case, in any ASCII case.
func hasPrefixFold(b []byte, upper string) bool {
	if len(b) < len(upper) {
		return false
	}
	for i := 0; i < len(upper); i++ {
		c := b[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}
