package accesslog

// A format string becomes a list of operations.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/replay/accesslog/formats"
)

// ErrFormat is what every error of Compile is.
var ErrFormat = errors.New("log format")

// FormatError is one mistake in a format string.
type FormatError struct {
	Format string // the string
	Column int    // the byte in it, from 1, where the mistake is; 0 where it has no one place
	Why    string // what is wrong and what to do about it
}

func (e *FormatError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("format %q: %s", e.Format, e.Why)
	}
	return fmt.Sprintf("format %q, column %d: %s", e.Format, e.Column, e.Why)
}

// Unwrap makes every FormatError an ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

// Compile makes a parser of what a user says of a log's format. Its error names all mistakes at once, each with its
// column and its remedy.
func Compile(spec Spec) (*Format, error) { return compileAt(spec, time.Now()) }

// compileAt compiles as of a moment, from which formats without a year take theirs.
func compileAt(spec Spec, now time.Time) (*Format, error) {
	p := &program{name: spec.Log, log: unescapeFormat(spec.Log), strictHosts: spec.StrictHosts, escape: formats.EscapeBackslash}
	if known, ok := formats.Find(spec.Log); ok {
		p.take(known, &spec)
	} else if strings.TrimSpace(spec.Log) == "" {
		return nil, &FormatError{Format: spec.Log, Why: "it is empty: give a preset (" + strings.Join(Presets(), ", ") +
			") or a goaccess log-format string"}
	}
	var errs []error
	errs = append(errs, p.setClocks(spec, now)...)
	errs = append(errs, p.setZone(spec.TZ)...)
	p.time.fraction = p.namesFields
	if strings.HasPrefix(strings.TrimSpace(p.log), "{") {
		errs = append(errs, p.compileJSON()...)
	} else {
		var e []error
		p.ops, e = compileOps(p.log)
		errs = append(errs, e...)
		errs = append(errs, missing(p.name, p.log, p.ops)...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p.spec = spec
	p.spec.Log = p.name
	if p.location == nil {
		p.spec.TZ = "UTC"
	}
	p.derive()
	return &Format{program: p, base: p}, nil
}

// Presets returns the names of the formats that are known, sorted.
func Presets() []string {
	names := make([]string, len(formats.Named))
	for i, p := range formats.Named {
		names[i] = p.Name
	}
	slices.Sort(names)
	return names
}

// take sets what the user did not set to what a format with a name says.
func (p *program) take(known *formats.Format, spec *Spec) {
	p.name, p.log = known.Name, known.Log
	p.logTime, p.escape, p.vhostIsLabel = known.LogTime, known.Escape, known.HostIsLabel
	p.lastVHost, p.namesFields = known.LastVHost, known.NamesFields
	p.zeroStatus, p.clientKey = known.ZeroStatus, known.ClientKey
	if spec.Date == "" && spec.Time == "" && spec.DateTime == "" {
		p.resolution = known.Resolution
	}
	if spec.DateTime == "" && spec.Time == "" {
		spec.DateTime = known.DateTime
	}
	if spec.Date == "" {
		spec.Date = known.Date
	}
	if spec.Time == "" {
		spec.Time = known.Time
	}
}

func (p *program) setClocks(spec Spec, now time.Time) (errs []error) {
	set := func(c *timeFormat, what, format, otherwise string) {
		if format == "" {
			format = otherwise
		}
		made, err := newTimeFormat(unescapeFormat(format), now)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrFormat, err))
		}
		made.why = "does not match the " + what + " format " + made.format
		*c = made
	}
	set(&p.date, "date", spec.Date, "%d/%b/%Y")
	set(&p.time, "time", spec.Time, "%H:%M:%S")
	// goaccess reads %x by its time-format where no datetime-format is given.
	switch at := spec.DateTime; {
	case at == "" && spec.Time == "" && spec.Date == "":
		p.dateTime = timeFormat{kind: readsAny, why: "is neither seconds since the epoch nor ISO 8601 nor Apache's time"}
	case at == "" && spec.Time != "":
		set(&p.dateTime, "date and time", spec.Time, "")
	default:
		set(&p.dateTime, "date and time", at, spec.Date)
	}
	return errs
}

func (p *program) setZone(name string) []error {
	if name == "" || strings.EqualFold(name, "UTC") || strings.EqualFold(name, "GMT") {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return []error{fmt.Errorf("%w: unknown time zone %q: give an IANA name such as Europe/Berlin", ErrFormat, name)}
	}
	p.location = zone
	return nil
}

// compileOps compiles a text format, or the format of one JSON value.
func compileOps(format string) (ops []op, errs []error) {
	fail := func(at int, why string, args ...any) {
		errs = append(errs, &FormatError{Format: format, Column: at + 1, Why: fmt.Sprintf(why, args...)})
	}
	percent, tilde := false, false
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case c == '%':
			percent = true
			if i == len(format)-1 {
				fail(i, "it ends in a %%: complete the specifier or remove it")
			}
		case c == '~' && !percent:
			tilde = true
		case tilde:
			tilde = false
			made, end, why := compileForwarded(format, i)
			if why != "" {
				fail(i-1, "%s", why)
				continue
			}
			ops = append(ops, made)
			i = end
		case percent && c == '{': // Apache's %{ms}T
			percent = false
			unit, _, _ := strings.Cut(format[i:], "T")
			made, ok := newOp(apacheUnits[unit], format, i+len(unit))
			if !ok {
				fail(i-1, "%%{ begins Apache's duration in a unit, %%{ms}T, %%{us}T or %%{s}T, and nothing else")
				continue
			}
			i += len(unit)
			made.received = true
			ops = append(ops, made)
		case percent:
			percent = false
			made, ok := newOp(c, format, i)
			if !ok {
				var known strings.Builder
				for _, s := range specifiers {
					known.WriteString(" " + specifierNames[s.letter])
				}
				fail(i-1, "%%%c is not a specifier: use one of%s, or %%^ to skip a field", c, known.String())
				continue
			}
			ops = append(ops, made)
		default:
			if n := len(ops); n > 0 && ops[n-1].kind == opLiteral {
				ops[n-1].count++
			} else {
				ops = append(ops, op{kind: opLiteral, count: 1})
			}
		}
	}
	return markAfterTime(ops), errs
}

// apacheUnits are the specifiers of Apache's durations in a unit.
var apacheUnits = map[string]byte{"{ms}": 'L', "{us}": 'D', "{s}": 'T'}

// compileForwarded compiles ~h{…}: a field of X-Forwarded-For. The characters in the braces separate addresses. The
// character after the braces, unless it is one of them, is where the field ends.
func compileForwarded(format string, i int) (made op, end int, why string) {
	if format[i] != 'h' {
		return op{}, i, fmt.Sprintf("~%c is not supported: the only such specifier is ~h{…}, for X-Forwarded-For",
			format[i])
	}
	open := strings.IndexByte(format[i:], '{')
	shut := strings.IndexByte(format[i:], '}')
	if open != 1 || shut < 3 {
		return op{}, i, "~h needs the characters between addresses in braces after it, as in ~h{, }"
	}
	made = op{kind: opForwarded, spec: 'h', set: format[i+2 : i+shut]}
	end = i + shut
	if end+1 < len(format) {
		end++
		made.delim = format[end]
	} else {
		made.toEnd = true
	}
	return made, end, ""
}

// markAfterTime finds the skips that directly follow a time, with at most a point or a space between: what they skip
// may be a fraction of a second or a UTC offset, which goaccess discards and a replay needs.
func markAfterTime(ops []op) []op {
	for i := range ops {
		if k := ops[i].kind; k != opTime && k != opDateTime {
			continue
		}
		next := i + 1
		if next < len(ops) && ops[next].kind == opLiteral && ops[next].count == 1 {
			next++
		}
		if next < len(ops) && ops[next].kind == opSkip {
			ops[next].afterTime = true
			ops[next].point = ops[i].delim == '.' || ops[i].delim == ','
		}
	}
	return ops
}

// missing names the required specifiers that a format lacks.
func missing(name, log string, ops []op) (errs []error) {
	has := func(specs string) bool {
		for _, o := range ops {
			if strings.IndexByte(specs, o.spec) >= 0 && o.kind != opLiteral {
				return true
			}
		}
		return false
	}
	for _, need := range [...]struct{ specs, why string }{
		{"h", "it has no %h (the client): add it where the address is"},
		{"dx", "it has no %d or %x (the date): add it where the date is"},
		{"rU", "it has no %r or %U (the request): add it where the request is"},
	} {
		if !has(need.specs) {
			why := need.why
			if len(log) > 0 && !strings.Contains(log, "%") {
				why = fmt.Sprintf("it is neither a preset (%s) nor a goaccess log-format string",
					strings.Join(Presets(), ", "))
				if near := formats.Nearest(log); near != "" {
					why = "it is not a preset: did you mean " + near + "?"
				}
			}
			errs = append(errs, &FormatError{Format: name, Why: why})
			if why != need.why {
				break
			}
		}
	}
	return errs
}

// unescapeFormat undoes backslash escapes in a format, as goaccess does: \t is a tab, \" a quote.
func unescapeFormat(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if i == len(s) {
			break
		}
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

// specifiers are all that may follow a percent sign, in the order in which they are listed, and the units of durations.
//
// %B, %Y and %l are ours: the body of the request, its content type and its length. goaccess has no use for them.
var specifiers = []struct {
	letter byte
	kind   opKind
	unit   time.Duration
}{
	{'x', opDateTime, 0}, {'t', opTime, 0}, {'d', opDate, 0}, {'v', opVHost, 0}, {'e', opUser, 0}, {'C', opOther, 0},
	{'h', opHost, 0}, {'r', opRequest, 0}, {'m', opMethod, 0}, {'U', opURL, 0}, {'q', opQuery, 0}, {'H', opProtocol, 0},
	{'s', opStatus, 0}, {'b', opBytes, 0}, {'R', opReferer, 0}, {'u', opAgent, 0}, {'K', opOther, 0}, {'k', opOther, 0},
	{'M', opOther, 0}, {'L', opDuration, time.Millisecond}, {'T', opDuration, time.Second}, {'D', opDuration, time.Microsecond},
	{'n', opDuration, time.Nanosecond}, {'B', opBody, 0}, {'Y', opBodyType, 0}, {'l', opBodyBytes, 0}, {'^', opSkip, 0},
	{'~', opSpace, 0},
}

// op is one step of a program.
type op struct {
	kind      opKind
	spec      byte   // the specifier's letter
	delim     byte   // the character that ends the field
	toEnd     bool   // the field ends with the line instead
	afterTime bool   // opSkip: what is skipped may be a fraction or a UTC offset
	point     bool   // opSkip: and it comes after a decimal point
	received  bool   // opDuration: whoever writes it logs when a request came
	list      bool   // opDuration: nginx may have written several
	overrides bool   // opHost, opForwarded: this is a better client than one that was read before
	quotes    bool   // the field may be in quotes, with delimiters in them
	pointed   bool   // opDuration: with a decimal point it is in seconds, as W3C's draft has it
	hostFirst bool   // opURL: the host may come before the path, without a scheme
	count     int32  // opLiteral: characters to skip
	unitNS    int64  // opDuration
	set       string // opForwarded: characters between addresses; opLack: what is lacking
}

type opKind uint8

const (
	opLiteral opKind = iota
	opSkip
	opSpace
	opForwarded
	opDate
	opTime
	opDateTime
	opHost
	opRequest
	opMethod
	opURL
	opQuery
	opProtocol
	opStatus
	opBytes
	opReferer
	opAgent
	opVHost
	opUser
	opDuration
	opBody
	opBodyType
	opBodyBytes
	opLack  // a comment names no field of a kind that a request needs
	opOther // a field that a replay has no use for
)

// newOp returns the operation of the specifier whose letter is the i-th byte of a format, or stands for what ends there.
// known is false if the letter is not a specifier.
func newOp(letter byte, format string, i int) (made op, known bool) {
	for _, s := range specifiers {
		if s.letter == letter {
			made = op{kind: s.kind, spec: letter, unitNS: s.unit.Nanoseconds(), toEnd: i == len(format)-1}
			if !made.toEnd {
				made.delim = format[i+1]
			}
			return made, true
		}
	}
	return op{}, false
}

// specifierNames are the strings that a Mismatch names a specifier by, so that rejecting allocates nothing.
var specifierNames = func() (names [128]string) {
	for i := range names {
		names[i] = "%" + string(rune(i))
	}
	return names
}()

// derive works out what follows from the format as a whole.
func (p *program) derive() {
	each := func(f func(op)) {
		for _, o := range p.ops {
			f(o)
		}
		for _, ops := range p.keys {
			for _, o := range ops {
				f(o)
			}
		}
	}
	if p.resolution == 0 {
		p.resolution = time.Hour
		finest := func(d time.Duration) { p.resolution = min(p.resolution, d) }
		each(func(o op) {
			switch o.kind {
			case opTime:
				finest(p.time.resolution())
			case opDateTime:
				finest(p.dateTime.resolution())
			case opDate:
				finest(p.date.resolution())
			case opSkip:
				if o.point {
					finest(time.Millisecond)
				}
			}
		})
	}
	each(func(o op) { p.hasBodies = p.hasBodies || o.kind == opBody })
	if _, ok := formats.Find(p.name); !ok {
		each(func(o op) {
			if o.kind == opDuration && o.spec != 'D' && !o.received && !p.logsStart() {
				p.logTime = formats.Finished
			}
		})
		for i := range p.ops {
			p.ops[i].list = p.ops[i].kind == opDuration && p.ops[i].delim == ' '
		}
		if len(p.keys) > 0 {
			p.escape = formats.EscapeNone
			p.zeroStatus = true
			p.logTime = formats.Finished
			if p.logsStart() {
				p.logTime = formats.Received
			}
		}
	}
}

// logsStart reports whether the format is that of a server known to log when a request came: HAProxy with its five times,
// Traefik with ms behind the last, and JSON whose key of the time says so.
func (p *program) logsStart() bool {
	for key, ops := range p.keys {
		name := strings.ToLower(key[strings.LastIndexByte(key, '.')+1:])
		for _, o := range ops {
			if (o.kind == opDateTime || o.kind == opDate) && strings.HasPrefix(name, "start") {
				return true
			}
		}
	}
	return strings.Contains(p.log, "/%L") || strings.Contains(p.log, "%Lms")
}

func inSet(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }
