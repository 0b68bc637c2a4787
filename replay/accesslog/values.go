package accesslog

// Numbers, durations and escapes as servers write them.

import (
	"bytes"
	"math"
	"strconv"

	"plimsoll/replay/accesslog/formats"
)

// parseUint reads b as C's strtoull does when it has to end with the text: white space and a plus sign may lead.
func parseUint(b []byte) (uint64, bool) {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseDuration reads a decimal count of units of unitNS nanoseconds. It returns -1 for "-" and anything else that is
// not a duration: a balancer logs -1 for a request that it could not forward.
func parseDuration(b []byte, unitNS int64) int64 {
	var whole, fraction, scale int64 = 0, 0, 1
	digits, point := 0, false
	for _, c := range b {
		switch {
		case c == '.' && !point:
			point = true
		case c < '0' || c > '9':
			return parseFloatDuration(b, unitNS)
		case !point:
			if whole > (math.MaxInt64/unitNS-9)/10 {
				return -1
			}
			whole = whole*10 + int64(c-'0')
			digits++
		default:
			if scale < 1e9 {
				fraction, scale = fraction*10+int64(c-'0'), scale*10
			}
			digits++
		}
	}
	if digits == 0 {
		return -1
	}
	return whole*unitNS + int64(float64(fraction)/float64(scale)*float64(unitNS)+0.5)
}

// parseFloatDuration reads what servers written in Go log for short times, 1.5e-05, HAProxy's +109 for a response that
// had not ended, and nginx's list of the times of several upstreams, as their sum; a dash in it counts as absent.
func parseFloatDuration(b []byte, unitNS int64) int64 {
	if len(b) > 0 && b[0] == '+' {
		return parseDuration(b[1:], unitNS)
	}
	for _, between := range [...]string{" : ", ", "} {
		first, rest, more := bytes.Cut(b, []byte(between))
		if !more {
			continue
		}
		sum := int64(0)
		for _, part := range [...][]byte{first, rest} {
			if isDash(part) {
				continue
			}
			one := parseDuration(part, unitNS)
			if one < 0 || sum > math.MaxInt64-one {
				return -1
			}
			sum += one
		}
		return sum
	}
	if len(b) == 0 || len(b) > 32 || !isDigit(b[0]) {
		return -1
	}
	for _, c := range b {
		if !isDigit(c) && !inSet(".eE+-", c) {
			return -1
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f*float64(unitNS) >= math.MaxInt64 {
		return -1
	}
	return int64(math.Round(f * float64(unitNS)))
}

// isSpace reports what C's isspace does.
func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isDigit(c byte) bool { return c-'0' < 10 }

// Unescape appends to dst what the server received where its log says src. Escapes that are cut off or unknown stay
// as they are.
func Unescape(dst, src []byte, style formats.Escape) []byte {
	switch style {
	case formats.EscapeBackslash:
		return unescapeBackslash(dst, src)
	case formats.EscapePlus:
		for _, c := range src {
			if c == '+' {
				c = ' '
			}
			dst = append(dst, c)
		}
		return dst
	case formats.EscapePercent:
		start := len(dst)
		dst = unescapeHex(dst, src, '%')
		return unescapeHex(dst[:start], dst[start:], '%') // CloudFront writes a space as %2520
	case formats.EscapeHash:
		return unescapeHex(dst, src, '#')
	}
	return append(dst, src...)
}

func unescapeBackslash(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		plain := bytes.IndexByte(src[i:], '\\')
		if plain < 0 || i+plain+1 == len(src) {
			return append(dst, src[i:]...)
		}
		dst = append(dst, src[i:i+plain]...)
		i += plain + 1
		switch c := src[i]; c {
		case '"', '\\', '\'':
			dst = append(dst, c)
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'v':
			dst = append(dst, '\v')
		case 'f':
			dst = append(dst, '\f')
		case 'a':
			dst = append(dst, '\a')
		case 'x':
			if v, ok := hexDigits(src[i+1:], 2); ok {
				dst = append(dst, byte(v))
				i += 2
				continue
			}
			dst = append(dst, '\\', c)
		case 'u':
			if v, ok := hexDigits(src[i+1:], 4); ok {
				dst = append(dst, string(rune(v))...)
				i += 4
				continue
			}
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, '\\', c)
		}
	}
	return dst
}

// unescapeHex undoes a mark with two hex digits. It may work in place: what it writes is never ahead of what it reads.
func unescapeHex(dst, src []byte, mark byte) []byte {
	for i := 0; i < len(src); i++ {
		if src[i] == mark {
			if v, ok := hexDigits(src[i+1:], 2); ok {
				dst = append(dst, byte(v))
				i += 2
				continue
			}
		}
		dst = append(dst, src[i])
	}
	return dst
}

func hexDigits(b []byte, n int) (v uint32, ok bool) {
	if len(b) < n {
		return 0, false
	}
	for _, c := range b[:n] {
		switch {
		case isDigit(c):
			v = v<<4 | uint32(c-'0')
		case c-'a' < 6:
			v = v<<4 | uint32(c-'a'+10)
		case c-'A' < 6:
			v = v<<4 | uint32(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
