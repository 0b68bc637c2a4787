package accesslog

import "bytes"

// isAddress reports whether b is an IPv4 or IPv6 address as C's inet_pton reads them: four decimal numbers without
// leading zeros, or eight groups of hex digits, one run of zeros left out, without a zone.
func isAddress(b []byte) bool {
	if bytes.IndexByte(b, ':') < 0 {
		return isIPv4(b)
	}
	return isIPv6(b)
}

func isIPv4(b []byte) bool {
	for part := range 4 {
		n, digits := 0, 0
		for digits < len(b) && isDigit(b[digits]) && digits < 4 {
			n = n*10 + int(b[digits]-'0')
			digits++
		}
		if digits == 0 || n > 255 || digits > 1 && b[0] == '0' {
			return false
		}
		b = b[digits:]
		if part < 3 {
			if len(b) == 0 || b[0] != '.' {
				return false
			}
			b = b[1:]
		}
	}
	return len(b) == 0
}

func isIPv6(b []byte) bool {
	groups, gap := 0, false
	if bytes.HasPrefix(b, []byte("::")) {
		gap, b = true, b[2:]
	}
	for len(b) > 0 {
		digits := 0
		for digits < len(b) && digits < 5 && isHex(b[digits]) {
			digits++
		}
		if digits < len(b) && b[digits] == '.' { // the last two groups as IPv4
			groups += 2
			return isIPv4(b) && (groups == 8 && !gap || groups < 8 && gap)
		}
		if digits == 0 || digits > 4 {
			return false
		}
		groups++
		if b = b[digits:]; len(b) == 0 {
			break
		}
		if b[0] != ':' || len(b) == 1 {
			return false
		}
		if b = b[1:]; b[0] == ':' {
			if gap {
				return false
			}
			gap, b = true, b[1:]
		}
	}
	return groups == 8 && !gap || groups < 8 && gap
}

func isHex(c byte) bool { return isDigit(c) || c|0x20-'a' < 6 }
