package accesslog

import (
	"strings"
	"time"
)

// specifiers are all that may follow a percent sign.
//
// %B, %Y and %l are ours: the body of the request, its content type and its length. goaccess has no use for them.
const specifiers = "xtdveChrmUqHsbRuKkMLTDnBYl^~"

const specifierList = "%x %t %d %v %e %C %h %r %m %U %q %H %s %b %R %u %K %k %M %L %T %D %n %B %Y %l %^ %~"

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
	overrides bool   // opHost: this is a better client than one that was read before
	quotes    bool   // the field may be in quotes, with delimiters in them
	count     int32  // opLiteral: characters to skip
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

func opOf(spec byte) opKind {
	switch spec {
	case '^':
		return opSkip
	case '~':
		return opSpace
	case 'd':
		return opDate
	case 't':
		return opTime
	case 'x':
		return opDateTime
	case 'h':
		return opHost
	case 'r':
		return opRequest
	case 'm':
		return opMethod
	case 'U':
		return opURL
	case 'q':
		return opQuery
	case 'H':
		return opProtocol
	case 's':
		return opStatus
	case 'b':
		return opBytes
	case 'R':
		return opReferer
	case 'u':
		return opAgent
	case 'v':
		return opVHost
	case 'e':
		return opUser
	case 'L', 'T', 'D', 'n':
		return opDuration
	case 'B':
		return opBody
	case 'Y':
		return opBodyType
	case 'l':
		return opBodyBytes
	}
	return opOther
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
	if _, ok := presetNamed(p.name); !ok {
		each(func(o op) {
			if o.kind == opDuration && o.spec != 'D' && !o.received && !p.logsStart() {
				p.logTime = Finished
			}
		})
		for i := range p.ops {
			p.ops[i].list = p.ops[i].kind == opDuration && p.ops[i].delim == ' '
		}
		if len(p.keys) > 0 {
			p.escape = EscapeNone
			p.zeroStatus = true
			p.logTime = Finished
			if p.logsStart() {
				p.logTime = Received
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

// durationUnit returns the unit of %L, %T, %D or %n in nanoseconds.
func durationUnit(spec byte) int64 {
	switch spec {
	case 'L':
		return int64(time.Millisecond)
	case 'T':
		return int64(time.Second)
	case 'D':
		return int64(time.Microsecond)
	}
	return 1
}

func inSet(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }
