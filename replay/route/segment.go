package route

import "bytes"

const maxSegment = 24

// firstSegment returns the text up to the first slash, without leading slashes.
func firstSegment(path []byte) []byte {
	path = bytes.TrimLeft(path, "/")
	if at := bytes.IndexByte(path, '/'); at >= 0 {
		return path[:at]
	}
	return path
}

// harmless reports whether a segment can serve as a name: short, plain, and a word rather than a number or token.
// A word has letters in it, at most four digits, and does not change between the two more than twice.
func harmless(segment []byte) bool {
	if len(segment) == 0 || len(segment) > maxSegment {
		return false
	}
	letters, digits, changes := 0, 0, 0
	var before byte
	vowels, run, longest := 0, 0, 0
	for _, c := range segment {
		var class byte
		switch {
		case 'a' <= c && c <= 'z':
			letters++
			class = 'a'
			if bytes.IndexByte([]byte("aeiouy"), c) >= 0 {
				vowels++
				run = 0
			} else {
				run++
				longest = max(longest, run)
			}
		case '0' <= c && c <= '9':
			digits++
			class = '0'
		case c == '-' || c == '_':
			run = 0
			continue
		default:
			return false
		}
		if before != 0 && class != before {
			changes++
		}
		before = class
	}
	if longest > 5 || letters > 4 && vowels == 0 { // no word in any of the languages that spell like this
		return false
	}
	return letters > 0 && digits <= 4 && changes <= 2 && !hexadecimal(segment)
}

// hexadecimal finds hashes and parts of UUIDs: eight or more hexadecimal digits, some of them numbers.
func hexadecimal(segment []byte) bool {
	digits := 0
	for _, c := range segment {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'f', c == '-':
		default:
			return false
		}
	}
	return len(segment) >= 8 && digits > 0
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

func contains(b []byte, part string) bool { return bytes.Contains(b, []byte(part)) }

// hasParam reports whether the query has a parameter that begins with param ("s=").
func hasParam(query []byte, param string) bool {
	for len(query) > 0 {
		if hasPrefix(query, param) {
			return true
		}
		at := bytes.IndexByte(query, '&')
		if at < 0 {
			return false
		}
		query = query[at+1:]
	}
	return false
}
