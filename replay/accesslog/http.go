package accesslog

// methods are the request methods that goaccess knows; it compares them as prefixes, in this order, ignoring case.
var methods = [...]string{
	"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "PATCH",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "VERSION-CONTROL", "REPORT", "CHECKOUT",
	"CHECKIN", "UNCHECKOUT", "MKWORKSPACE", "UPDATE", "LABEL", "MERGE", "BASELINE-CONTROL", "MKACTIVITY", "ORDERPATCH",
}

// protocols are the protocols that goaccess knows, compared in the same way: HTTP/2.0 is HTTP/2.
var protocols = [...]string{"HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"}

// methodLen returns the length of the method that b begins with, or 0.
func methodLen(b []byte) int {
	if len(b) >= 4 && b[0] == 'G' && b[1] == 'E' && b[2] == 'T' {
		return 3
	}
	return knownPrefix(b, methods[:])
}

// protocolLen returns the length of the protocol that b begins with, or 0.
func protocolLen(b []byte) int { return knownPrefix(b, protocols[:]) }

func knownPrefix(b []byte, known []string) int {
	for _, name := range known {
		if hasPrefixFold(b, name) {
			return len(name)
		}
	}
	return 0
}

// hasPrefixFold reports whether b begins with upper, which is in upper case, in any ASCII case.
func hasPrefixFold(b []byte, upper string) bool {
	if len(b) < len(upper) {
		return false
	}
	for i := 0; i < len(upper); i++ {
		c := b[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}
