package accesslog

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
