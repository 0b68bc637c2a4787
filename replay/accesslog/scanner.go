package accesslog

import "bytes"

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
func (f *fieldSet) add(spec byte)     { *f |= 1 << (spec - 'A') }

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

// skip moves to the next delimiter, or stays where there is none.
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
			f.at.nanos, b = nanos, rest
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
