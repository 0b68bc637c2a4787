package accesslog

// Lines of JSON: scanned, compiled, and read.

import (
	"bytes"
	"unicode/utf8"
)

// runJSON runs the programs of a JSON format over a line.
func (f *Format) runJSON(line []byte, r *Request) *Mismatch {
	f.json.arena, f.json.request, f.json.rejected = f.arena, r, nil
	why, finished := f.json.scan(line, f)
	f.arena = f.json.arena
	if !finished && why == "" {
		return f.json.rejected
	}
	if why != "" {
		f.reject = Mismatch{Specifier: "{", Column: f.json.pos + 1, Why: why}
		return &f.reject
	}
	return nil
}

// jsonValue runs the program that a JSON format has for a key.
func (f *Format) jsonValue(key, value []byte, base int) bool {
	if n := bytes.IndexByte(value, 0); n >= 0 {
		value = value[:n]
	}
	ops, ok := f.keys[string(key)]
	if !ok || len(value) == 0 {
		return true
	}
	f.json.rejected = f.run(ops, value, base, f.json.request)
	return f.json.rejected == nil
}

// compileJSON compiles a log-format that is a JSON text: the formats of the values at its keys.
func (p *program) compileJSON() []error {
	c := jsonCompiler{program: p}
	p.keys = map[string][]op{}
	var j jsonScanner
	if why, finished := j.scan([]byte(p.log), &c); !finished || j.peek() != 0 {
		if why == "" {
			why = "is not JSON: text follows the closing brace"
		}
		return []error{&FormatError{Format: p.name, Column: j.pos + 1, Why: "it " + why}}
	}
	var all []op
	for _, ops := range p.keys {
		all = append(all, ops...)
	}
	return append(c.errs, missing(p.name, p.log, all)...)
}

type jsonCompiler struct {
	*program
	errs []error
}

func (c *jsonCompiler) jsonValue(key, value []byte, base int) bool {
	ops, errs := compileOps(string(value))
	c.errs = append(c.errs, errs...)
	if c.clientKey != "" && string(key) == c.clientKey {
		ops[0].overrides = true
	}
	c.keys[string(key)] = ops
	return true
}

// jsonSink receives every value of a JSON text. The key is the names of the objects around it, joined by points;
// the value of a string is its text, of null "-", of all else what is written there. It begins at byte base.
// Returning false ends the scan.
type jsonSink interface {
	jsonValue(key, value []byte, base int) bool
}

// jsonScanner reads JSON without building anything of it. Keys are joined as goaccess joins them: the elements of an
// array share the array's key, and the end of an array or an object takes the last name off.
type jsonScanner struct {
	text  []byte
	pos   int
	key   []byte
	arena []byte // decoded strings
	sink  jsonSink
	depth int
	why   string // the mistake, once there is one

	request  *Request  // being filled in by runJSON
	rejected *Mismatch // by the program of a value
}

// maxJSONDepth keeps a line of brackets from exhausting the stack.
const maxJSONDepth = 256

// scan reads the first value of text; what follows it is ignored, as goaccess does. It returns "" or what is wrong
// at pos; finished is false where the sink ended the scan.
func (j *jsonScanner) scan(text []byte, sink jsonSink) (why string, finished bool) {
	j.text, j.pos, j.key, j.sink, j.depth, j.why = text, 0, j.key[:0], sink, 0, ""
	finished = j.value(true)
	return j.why, finished
}

func (j *jsonScanner) fail(why string) bool {
	j.why = why
	return false
}

// peek skips white space and returns the next byte, 0 at the end.
func (j *jsonScanner) peek() byte {
	for j.pos < len(j.text) {
		if c := j.text[j.pos]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		j.pos++
	}
	return 0
}

// value reads one value. A member is a value with a name, which comes off the key after it.
func (j *jsonScanner) value(member bool) bool {
	switch c := j.peek(); c {
	case '{':
		return j.enter((*jsonScanner).object)
	case '[':
		return j.enter((*jsonScanner).array)
	case '"':
		text, base, ok := j.str()
		return ok && j.emit(text, base, member)
	case 't':
		return j.literal("true", "true", member)
	case 'f':
		return j.literal("false", "false", member)
	case 'n':
		return j.literal("null", "-", member)
	default:
		if c == '-' || isDigit(c) {
			return j.number(member)
		}
		return j.fail("is not JSON: a value was expected")
	}
}

func (j *jsonScanner) enter(inside func(*jsonScanner) bool) bool {
	if j.depth++; j.depth > maxJSONDepth {
		return j.fail("is JSON nested too deeply")
	}
	j.pos++
	if !inside(j) {
		return false
	}
	j.depth--
	j.leave()
	return true
}

// leave takes the last name off the key.
func (j *jsonScanner) leave() { j.key = j.key[:max(0, bytes.LastIndexByte(j.key, '.'))] }

func (j *jsonScanner) emit(value []byte, base int, member bool) bool {
	if j.depth > 0 && !j.sink.jsonValue(j.key, value, base) {
		return false
	}
	if member {
		j.leave()
	}
	return true
}

func (j *jsonScanner) object() bool {
	if j.peek() == '}' {
		j.pos++
		return true
	}
	for {
		if j.peek() != '"' {
			return j.fail("is not JSON: a name in quotes was expected")
		}
		name, _, ok := j.str()
		if !ok {
			return false
		}
		if len(j.key) > 0 {
			j.key = append(j.key, '.')
		}
		j.key = append(j.key, name...)
		if j.peek() != ':' {
			return j.fail("is not JSON: a colon was expected")
		}
		j.pos++
		if !j.value(true) {
			return false
		}
		switch j.peek() {
		case ',':
			j.pos++
		case '}':
			j.pos++
			return true
		default:
			return j.fail("is not JSON: a comma or } was expected")
		}
	}
}

func (j *jsonScanner) array() bool {
	if j.peek() == ']' {
		j.pos++
		return true
	}
	for {
		if !j.value(false) {
			return false
		}
		switch j.peek() {
		case ',':
			j.pos++
		case ']':
			j.pos++
			return true
		default:
			return j.fail("is not JSON: a comma or ] was expected")
		}
	}
}

func (j *jsonScanner) literal(word, value string, member bool) bool {
	if !bytes.HasPrefix(j.text[j.pos:], []byte(word)) {
		return j.fail("is not JSON: a value was expected")
	}
	base := j.pos
	j.pos += len(word)
	j.arena = append(j.arena, value...)
	return j.emit(j.arena[len(j.arena)-len(value):len(j.arena):len(j.arena)], base, member)
}

func (j *jsonScanner) number(member bool) bool {
	base := j.pos
	digits := func() bool {
		start := j.pos
		for j.pos < len(j.text) && isDigit(j.text[j.pos]) {
			j.pos++
		}
		return j.pos > start
	}
	at := func(chars string) bool { return j.pos < len(j.text) && inSet(chars, j.text[j.pos]) }
	if at("-") {
		j.pos++
	}
	ok := true
	if at("0") {
		j.pos++
	} else {
		ok = digits()
	}
	if at(".") {
		j.pos++
		ok = ok && digits()
	}
	if at("eE") {
		j.pos++
		if at("+-") {
			j.pos++
		}
		ok = ok && digits()
	}
	if !ok {
		return j.fail("is not JSON: a number ends too early")
	}
	return j.emit(j.text[base:j.pos:j.pos], base, member)
}

// str reads a string. It returns a view of the text where nothing in it is escaped.
func (j *jsonScanner) str() (value []byte, base int, ok bool) {
	j.pos++
	base = j.pos
	end := bytes.IndexByte(j.text[base:], '"')
	if end < 0 {
		return nil, base, j.fail("is not JSON: a string does not end")
	}
	raw := j.text[base : base+end : base+end]
	if bytes.IndexByte(raw, '\\') >= 0 {
		return j.escaped(base)
	}
	j.pos = base + end + 1
	return raw, base, j.checked(raw)
}

// checked rejects a string with characters that must be escaped.
func (j *jsonScanner) checked(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' {
			return j.fail("is not JSON: a string contains a control character")
		}
	}
	if !utf8.Valid(raw) {
		return j.fail("is not JSON: a string is not UTF-8")
	}
	return true
}

func (j *jsonScanner) escaped(base int) (value []byte, _ int, ok bool) {
	start := len(j.arena)
	for i := base; i < len(j.text); i++ {
		switch c := j.text[i]; c {
		case '"':
			j.pos = i + 1
			return j.arena[start:len(j.arena):len(j.arena)], base, j.checked(j.text[base:i])
		case '\\':
			n := j.escape(j.text[i+1:])
			if n == 0 {
				j.pos = i
				return nil, base, j.fail("is not JSON: an escape sequence is unknown")
			}
			i += n
		default:
			j.arena = append(j.arena, c)
		}
	}
	return nil, base, j.fail("is not JSON: a string does not end")
}

// escape decodes what follows a backslash, and returns its length; 0 if it is not an escape.
func (j *jsonScanner) escape(b []byte) (n int) {
	if len(b) == 0 {
		return 0
	}
	switch c := b[0]; c {
	case '"', '\\', '/':
		j.arena = append(j.arena, c)
	case 'b':
		j.arena = append(j.arena, '\b')
	case 'f':
		j.arena = append(j.arena, '\f')
	case 'n':
		j.arena = append(j.arena, '\n')
	case 'r':
		j.arena = append(j.arena, '\r')
	case 't':
		j.arena = append(j.arena, '\t')
	case 'u':
		v, ok := hexDigits(b[1:], 4)
		if !ok {
			return 0
		}
		if v >= 0xD800 && v < 0xDC00 { // the first half of a pair
			if len(b) < 11 || b[5] != '\\' || b[6] != 'u' {
				return 0
			}
			low, ok := hexDigits(b[7:], 4)
			if !ok || low < 0xDC00 || low > 0xDFFF {
				return 0
			}
			j.arena = utf8.AppendRune(j.arena, rune(0x10000+(v-0xD800)<<10+(low-0xDC00)))
			return 11
		}
		if v >= 0xDC00 && v < 0xE000 {
			return 0
		}
		j.arena = utf8.AppendRune(j.arena, rune(v))
		return 5
	default:
		return 0
	}
	return 1
}
