package accesslog

import "bytes"

// Escape is how a server writes bytes that would break its log's lines or fields.
type Escape uint8

const (
	// EscapeNone leaves them as they are.
	EscapeNone Escape = iota
	// EscapeBackslash is Apache's \" \\ \n \t \r \b \v \xhh, which includes nginx's \xHH and Traefik's \uhhhh.
	EscapeBackslash
	// EscapePlus is IIS's: a plus sign in a header field is a space.
	EscapePlus
	// EscapePercent is CloudFront's: %XX in a header field, for some fields twice over.
	EscapePercent
)

// Unescape appends to dst what the server received where its log says src. Escapes that are cut off or unknown stay
// as they are.
func Unescape(dst, src []byte, style Escape) []byte {
	switch style {
	case EscapeBackslash:
		return unescapeBackslash(dst, src)
	case EscapePlus:
		for _, c := range src {
			if c == '+' {
				c = ' '
			}
			dst = append(dst, c)
		}
		return dst
	case EscapePercent:
		start := len(dst)
		dst = unescapePercent(dst, src)
		return unescapePercent(dst[:start], dst[start:]) // CloudFront writes a space as %2520
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

// unescapePercent may work in place: what it writes is never ahead of what it reads.
func unescapePercent(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		if src[i] == '%' {
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
