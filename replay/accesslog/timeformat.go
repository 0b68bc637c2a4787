package accesslog

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
	if !ok || len(rest) > 0 {
		return false
	}
	if f.year == noYear {
		f.year = c.lastYearOf(f.month, f.day)
	}
	f.into(t)
	return true
}

// noYear marks a date whose year was not said.
const noYear = -1

// lastYearOf returns the year of the last such day that is not after tomorrow: clocks and zones differ a little.
func (c timeFormat) lastYearOf(month, day int) int {
	year := time.Unix(c.today*86400, 0).UTC().Year()
	if daysFromCivil(year, month, day) > c.today+1 {
		year--
	}
	return year
}

// readEpoch reads a whole number of units since the epoch, perSecond of which make a second.
func readEpoch(b []byte, perSecond uint64, t *timestamp) bool {
	n, ok := parseUint(b)
	if !ok || n/perSecond >= maxEpochS {
		return false
	}
	t.epoch, t.hasDay = true, true
	t.seconds = int64(n / perSecond)
	t.nanos = int64(n%perSecond) * int64(1e9/perSecond)
	return true
}

// readAny reads what servers write by default: seconds since the epoch with an optional fraction (nginx's
// $msec, Squid, Caddy), ISO 8601 ($time_iso8601), or Apache's %t and nginx's $time_local.
func readAny(b []byte, t *timestamp) bool {
	for _, format := range [...]string{"%s", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d/%b/%Y:%H:%M:%S"} {
		f := fields{month: 1, day: 1}
		rest, ok := f.strptime(b, format)
		if !ok {
			continue
		}
		if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
			if rest, f.nanos, ok = scanFraction(rest[1:]); !ok {
				continue
			}
		}
		if len(rest) > 1 && rest[0] == ' ' {
			rest = rest[1:]
		}
		if len(rest) > 0 && !f.epoch {
			if rest, f.offsetS, f.offset = scanOffset(rest); !f.offset {
				continue
			}
		}
		if len(rest) == 0 {
			f.into(t)
			return true
		}
	}
	return false
}
