package accesslog

// Addresses and names of clients, also in X-Forwarded-For.

import "bytes"

// host takes a client's address or name.
func (f *Format) host(b []byte, r *Request) (why string) {
	if len(b) == 0 {
		return whyEmpty
	}
	if f.strictHosts && !isAddress(b) {
		return "is not an IP address, and --strict-hosts rejects names"
	}
	r.Host = b
	f.have.add('h')
	return ""
}

// bracketedHost takes an IPv6 address in brackets; pos is after the first. The bracket that ends it is left for
// the format to skip, as any delimiter.
func (f *Format) bracketedHost(o *op, line []byte, pos int, r *Request) (next int, why string) {
	inner := op{delim: ']'}
	if pos >= len(line) {
		inner = *o
	}
	end, ok := f.token(&inner, line, pos, 1)
	if !ok {
		return pos - 2, whyNoDelimiter
	}
	return end, f.host(trimSpace(line[pos:min(end, len(line))]), r)
}

// bareIPv6 returns the length of the IPv6 address without brackets, 2001:db8::1:33317, that b begins with, before a port;
// 0 for none. HAProxy writes it so.
func bareIPv6(b []byte) int {
	end := bytes.IndexByte(b, ' ')
	if end < 0 {
		return 0
	}
	last := bytes.LastIndexByte(b[:end], ':')
	if last <= 0 || bytes.IndexByte(b, ':') == last || !isIPv6(b[:last]) {
		return 0
	}
	return last
}

// forwarded takes the client from X-Forwarded-For: the first valid address. Where the format has a delimiter after
// the field that does not separate addresses, the field ends there; else it ends with the last address.
func (f *Format) forwarded(o *op, line []byte, pos int, r *Request) (next int, why string) {
	const none = "has no IP address: X-Forwarded-For should name one"
	if !o.toEnd && !inSet(o.set, o.delim) && bytes.IndexByte(line[pos:], o.delim) >= 0 {
		end, _ := f.token(o, line, pos, 1)
		f.firstAddress(o.set, line[pos:min(end, len(line))], true, r)
		if !f.have.has('h') {
			return pos, none
		}
		return end + 1, ""
	}
	n := f.firstAddress(o.set, line[pos:], false, r)
	if !f.have.has('h') {
		return pos, none
	}
	return pos + n, ""
}

// firstAddress takes the first valid address of a list, and returns how much of b the list is. With only it stops
// there.
func (f *Format) firstAddress(set string, b []byte, only bool, r *Request) (n int) {
	separators := 0
	for n < len(b) {
		end := bytes.IndexAny(b[n:], set) // separators are ASCII
		if end == 0 {
			n, separators = n+1, separators+1
			continue
		}
		if separators < len(set) && f.have.has('h') {
			break // fewer separators than between two addresses: the list is over
		}
		if end < 0 {
			end = len(b) - n
		}
		candidate := trimSpace(b[n : n+end])
		valid := isAddress(candidate)
		if f.have.has('h') && !valid {
			break
		}
		if valid && !f.have.has('h') {
			r.Host = candidate
			f.have.add('h')
			if only {
				break
			}
		}
		separators = 0
		n += end
	}
	return n
}

// wholeHost returns the host that was asked for, which line begins with. goaccess ends it at the delimiter, also within
// an IPv6 address in brackets, [2001:db8::1]:80 in %v:%^; here it is kept whole. What follows is read as goaccess does.
func wholeHost(token, line []byte) []byte {
	if len(token) == 0 || token[0] != '[' || bytes.IndexByte(token, ']') >= 0 {
		return token
	}
	start, end := bytes.IndexByte(line, '['), bytes.IndexByte(line, ']')
	if end < 0 || !isAddress(line[start+1:end]) {
		return token
	}
	return line[start : end+1]
}

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
