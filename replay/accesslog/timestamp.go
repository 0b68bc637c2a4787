package accesslog

import "time"

// timestamp is a point in time while it is being read: as %d and %t say it, or as seconds since the epoch.
type timestamp struct {
	epoch   bool  // seconds counts from the Unix epoch, UTC; otherwise day and seconds are local
	hasDay  bool  // a date was read
	offset  bool  // offsetS was read
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
