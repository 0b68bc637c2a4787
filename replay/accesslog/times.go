package accesslog

// Dates and times as C reads them.

import (
	"fmt"
	"strings"
	"time"
)

// timeFormat reads one date or time format.
type timeFormat struct {
	kind timeFormatKind
	// format is the strftime format with its abbreviations (%T, %F, …) written out.
	format string
	// why is what a Mismatch says of a text that does not match the format.
	why string
	// spaces is the number of spaces in the format.
	spaces int
	// fraction allows for a fraction of a second behind what the format reads.
	fraction bool
	// today is when the format was compiled, in days since 1970: a format without a year means the last such date.
	today int64
}

type timeFormatKind uint8

const (
	readsStrptime timeFormatKind = iota
	readsMicros                  // the whole format is %f: microseconds since the epoch
	readsMillis                  // the whole format is %*: milliseconds since the epoch
	readsAny                     // no format was given for %x: whatever is met
)

// abbreviations are strftime conversions that stand for others.
var abbreviations = map[byte]string{
	'T': "%H:%M:%S", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'r': "%I:%M:%S %p",
	'c': "%a %b %e %H:%M:%S %Y", 'x': "%m/%d/%y", 'X': "%H:%M:%S",
}

// conversions are those that strptime below understands.
const conversions = "aAbBhdeYymHkIlMSpjsfzZnt%*"

// newTimeFormat compiles a strftime format. The error says which conversion is not known, and where.
func newTimeFormat(format string, now time.Time) (timeFormat, error) {
	switch format {
	case "%f":
		return timeFormat{kind: readsMicros, format: format}, nil
	case "%*":
		return timeFormat{kind: readsMillis, format: format}, nil
	}
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) {
			return timeFormat{}, fmt.Errorf("%q ends in a lone %%: write %%%% for a percent sign", format)
		}
		if full, ok := abbreviations[format[i]]; ok {
			out.WriteString(full)
		} else if strings.IndexByte(conversions, format[i]) >= 0 {
			out.WriteByte('%')
			out.WriteByte(format[i])
		} else {
			return timeFormat{}, fmt.Errorf("%q has %%%c at column %d, which is not a supported date or time conversion: use %s",
				format, format[i], i, "%d %m %b %Y %y %H %M %S %T %F %D %z %s %f %*")
		}
	}
	return timeFormat{format: out.String(), spaces: strings.Count(out.String(), " "), today: now.Unix() / 86400}, nil
}

// resolution returns the finest step that the format can express.
func (c timeFormat) resolution() time.Duration {
	switch {
	case c.kind == readsMicros, strings.Contains(c.format, "%f"):
		return time.Microsecond
	case c.kind == readsMillis, strings.Contains(c.format, "%*"), c.kind == readsAny:
		return time.Millisecond
	case strings.Contains(c.format, "%S"), strings.Contains(c.format, "%s"):
		return time.Second
	case strings.Contains(c.format, "%M"):
		return time.Minute
	}
	return time.Hour
}

// read parses the whole of b.
func (c timeFormat) read(b []byte, t *timestamp) bool {
	switch c.kind {
	case readsMicros:
		return readEpoch(b, 1e6, t)
	case readsMillis:
		return readEpoch(b, 1e3, t)
	case readsAny:
		return readAny(b, t)
	}
	f := fields{year: noYear, month: 1, day: 1}
	rest, ok := f.strptime(b, c.format)
	if ok && c.fraction && len(rest) > 1 && rest[0] == '.' {
		rest, f.nanos, ok = scanFraction(rest[1:])
	}
	if !ok || len(rest) > 0 {
		return false
	}
	if f.year == noYear { // the last such day that is not after tomorrow: clocks and zones differ a little
		f.year = time.Unix(c.today*86400, 0).UTC().Year()
		if daysFromCivil(f.year, f.month, f.day) > c.today+1 {
			f.year--
		}
	}
	f.into(t)
	return true
}

// noYear marks a date whose year was not said.
const noYear = -1

// readEpoch reads a whole number of units since the epoch, perSecond of which make a second.
func readEpoch(b []byte, perSecond uint64, t *timestamp) bool {
	n, ok := parseUint(b)
	if !ok || n/perSecond >= maxEpochS {
		return false
	}
	t.epoch, t.hasDay, t.isFine = true, true, true
	t.seconds = int64(n / perSecond)
	t.nanos = int64(n%perSecond) * int64(1e9/perSecond)
	return true
}

// readAny reads what servers write by default: seconds since the epoch with an optional fraction (nginx's
// $msec, Squid, Caddy), milli-, micro- or nanoseconds since then, ISO 8601 ($time_iso8601), or Apache's %t and nginx's
// $time_local.
func readAny(b []byte, t *timestamp) bool {
	if n, ok := parseUint(b); ok && n >= 1e11 { // seconds would be in the year 5138, milliseconds are in 1973
		perSecond := uint64(1e3)
		for n/perSecond >= 1e11 {
			perSecond *= 1e3
		}
		return readEpoch(b, perSecond, t)
	}
	for _, format := range [...]string{"%s", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d/%b/%Y:%H:%M:%S"} {
		f := fields{month: 1, day: 1}
		rest, ok := f.strptime(b, format)
		if !ok {
			continue
		}
		isFine := len(rest) > 1 && (rest[0] == '.' || rest[0] == ',')
		if isFine {
			if rest, f.nanos, ok = scanFraction(rest[1:]); !ok {
				continue
			}
		}
		if len(rest) > 1 && rest[0] == ' ' {
			rest = rest[1:]
		}
		if string(rest) == "UTC" || string(rest) == "GMT" { // Fastly's %Z
			rest, f.offset = nil, true
		}
		if len(rest) > 0 && !f.epoch {
			if rest, f.offsetS, f.offset = scanOffset(rest); !f.offset {
				continue
			}
		}
		if len(rest) == 0 {
			f.into(t)
			t.isFine = isFine
			return true
		}
	}
	return false
}

// fields are what strptime fills in.
type fields struct {
	year, month, day     int
	hour, minute, second int
	hour12               bool
	pm                   bool
	yearDay              int // from 1; 0 when not said
	epoch                bool
	epochS               int64
	nanos                int64
	offset               bool
	offsetS              int32
}

// into stores the fields as a timestamp.
func (f *fields) into(t *timestamp) {
	t.hasDay = true
	t.nanos = f.nanos
	if f.offset {
		t.offset, t.offsetS = true, f.offsetS
	}
	if f.epoch {
		t.epoch, t.seconds = true, f.epochS
		return
	}
	if f.yearDay > 0 {
		t.day = daysFromCivil(f.year, 1, 1) + int64(f.yearDay-1)
	} else {
		t.day = daysFromCivil(f.year, f.month, f.day)
	}
	hour := f.hour
	if f.hour12 {
		hour %= 12
		if f.pm {
			hour += 12
		}
	}
	t.seconds = int64(hour*3600 + f.minute*60 + f.second)
}

// strptime reads b by an expanded format and returns what is left. It follows glibc: white space in the format
// matches any amount of it, a number may have white space before it, names match short or long in any case, and
// a month may have 31 days. Beyond glibc, %f and %* read the digits of a fraction of a second.
func (f *fields) strptime(b []byte, format string) (rest []byte, ok bool) {
	for i := 0; i < len(format); i++ {
		c := format[i]
		if isSpace(c) {
			b = skipSpace(b)
			continue
		}
		if c != '%' {
			if len(b) == 0 || b[0] != c {
				return b, false
			}
			b = b[1:]
			continue
		}
		i++
		if b, ok = f.conversion(b, format[i]); !ok {
			return b, false
		}
	}
	return b, true
}

func (f *fields) conversion(b []byte, c byte) (rest []byte, ok bool) {
	switch c {
	case 'd', 'e':
		return scanNumber(b, 1, 31, 2, &f.day)
	case 'm':
		return scanNumber(b, 1, 12, 2, &f.month)
	case 'b', 'B', 'h':
		return scanName(b, months[:], &f.month)
	case 'a', 'A':
		var weekday int
		return scanName(b, weekdays[:], &weekday)
	case 'Y':
		return scanNumber(b, 0, 9999, 4, &f.year)
	case 'y':
		if b, ok = scanNumber(b, 0, 99, 2, &f.year); ok {
			if f.year += 1900; f.year < 1969 {
				f.year += 100
			}
		}
		return b, ok
	case 'H', 'k':
		f.hour12 = false
		return scanNumber(b, 0, 23, 2, &f.hour)
	case 'I', 'l':
		f.hour12 = true
		return scanNumber(b, 1, 12, 2, &f.hour)
	case 'M':
		return scanNumber(b, 0, 59, 2, &f.minute)
	case 'S':
		return scanNumber(b, 0, 61, 2, &f.second)
	case 'j':
		return scanNumber(b, 1, 366, 3, &f.yearDay)
	case 'p':
		f.pm = hasPrefixFold(b, "PM")
		if !f.pm && !hasPrefixFold(b, "AM") {
			return b, false
		}
		return b[2:], true
	case 's':
		return f.scanEpoch(b)
	case 'f', '*':
		b, f.nanos, ok = scanFraction(b)
		return b, ok
	case 'z':
		b, f.offsetS, f.offset = scanOffset(skipSpace(b))
		return b, f.offset
	case 'Z':
		for b = skipSpace(b); len(b) > 0 && !isSpace(b[0]); b = b[1:] {
		}
		return b, true
	case 'n', 't':
		return skipSpace(b), true
	case '%':
		return b[min(1, len(b)):], len(b) > 0 && b[0] == '%'
	}
	return b, false
}

// maxEpochS is far beyond any time in a log, and small enough for sums.
const maxEpochS = 1 << 53

func (f *fields) scanEpoch(b []byte) (rest []byte, ok bool) {
	f.epochS = 0
	for len(b) > 0 && isDigit(b[0]) && f.epochS < maxEpochS {
		f.epochS = f.epochS*10 + int64(b[0]-'0')
		b, ok = b[1:], true
	}
	f.epoch = ok
	return b, ok && f.epochS < maxEpochS
}

var months = [...]string{
	"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE",
	"JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER",
}

var weekdays = [...]string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}

// scanName reads a name in full or its first three letters, and stores its number from 1.
func scanName(b []byte, names []string, n *int) (rest []byte, ok bool) {
	for i, name := range names {
		if !hasPrefixFold(b, name[:3]) {
			continue
		}
		*n = i + 1
		if hasPrefixFold(b, name) {
			return b[len(name):], true
		}
		return b[3:], true
	}
	return b, false
}

// scanNumber reads up to digits digits, as long as more of them stay within the limit, as glibc does.
func scanNumber(b []byte, low, high, digits int, n *int) (rest []byte, ok bool) {
	if b = skipSpace(b); len(b) == 0 || !isDigit(b[0]) {
		return b, false
	}
	v := int(b[0] - '0')
	for b = b[1:]; digits > 1 && v*10 <= high && len(b) > 0 && isDigit(b[0]); b = b[1:] {
		v = v*10 + int(b[0]-'0')
		digits--
	}
	*n = v
	return b, v >= low && v <= high
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

// timestamp is a point in time while it is being read: as %d and %t say it, or as seconds since the epoch.
type timestamp struct {
	epoch   bool  // seconds counts from the Unix epoch, UTC; otherwise day and seconds are local
	hasDay  bool  // a date was read
	offset  bool  // offsetS was read
	isFine  bool  // it was written with a fraction of a second
	offsetS int32 // seconds east of UTC
	day     int64 // days since 1970-01-01
	seconds int64 // of the day, or since the epoch
	nanos   int64 // of the second
}

// representable reports whether the timestamp can be a server's: from 1970 to 2261, where 64 bits of nanoseconds end.
func (t *timestamp) representable() bool {
	const lastDay = 106650 // 2261-12-31
	day := t.day
	if t.epoch {
		day = t.seconds / 86400
	}
	return day >= 0 && day <= lastDay
}

// ns returns the instant in nanoseconds since the Unix epoch, and the UTC offset that it was written with. A time
// without an offset is in the given zone; nil means UTC.
func (t *timestamp) ns(zone *time.Location) (ns int64, offsetS int32) {
	if t.epoch {
		return t.seconds*1e9 + t.nanos, t.offsetS
	}
	local := t.day*86400 + t.seconds
	if t.offset || zone == nil {
		return (local-int64(t.offsetS))*1e9 + t.nanos, t.offsetS
	}
	// Around a change of clocks this picks the reading that Go's time.Date picks.
	u := time.Unix(local, 0).UTC()
	at := time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, zone)
	_, offset := at.Zone()
	return at.Unix()*1e9 + t.nanos, int32(offset)
}

// daysFromCivil counts days from 1970-01-01 in the proleptic Gregorian calendar. A day past the end of its month
// runs over into the next, as in C's mktime.
func daysFromCivil(year, month, day int) int64 {
	y, m := int64(year), int64(month)
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yearOfEra := y - era*400
	dayOfYear := (153*(m-3)+2)/5 + int64(day) - 1
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}

// scanOffset reads a UTC offset, Z, ±hh, ±hhmm or ±hh:mm, and returns what follows it.
func scanOffset(b []byte) (rest []byte, offsetS int32, ok bool) {
	if len(b) > 0 && b[0] == 'Z' {
		return b[1:], 0, true
	}
	if len(b) < 3 || b[0] != '+' && b[0] != '-' || !isDigit(b[1]) || !isDigit(b[2]) {
		return b, 0, false
	}
	hours, minutes := int32(b[1]-'0')*10+int32(b[2]-'0'), int32(0)
	rest = b[3:]
	m := rest
	if len(m) > 0 && m[0] == ':' {
		m = m[1:]
	}
	if len(m) >= 2 && isDigit(m[0]) && isDigit(m[1]) {
		minutes = int32(m[0]-'0')*10 + int32(m[1]-'0')
		rest = m[2:]
	}
	if hours > 14 || minutes > 59 {
		return b, 0, false
	}
	offsetS = hours*3600 + minutes*60
	if b[0] == '-' {
		offsetS = -offsetS
	}
	return rest, offsetS, true
}

// scanFraction reads the digits after a decimal point as nanoseconds and returns what follows them.
func scanFraction(b []byte) (rest []byte, nanos int64, ok bool) {
	scale := int64(1e9)
	for len(b) > 0 && isDigit(b[0]) {
		if scale > 1 {
			scale /= 10
			nanos += int64(b[0]-'0') * scale
		}
		b, ok = b[1:], true
	}
	return b, nanos, ok
}
