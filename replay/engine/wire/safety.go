package wire

import "strings"

// Reasons for not sending a request, as in summary.json under "skipped".
const (
	SkipMethod      = "method_not_allowed"
	SkipTarget      = "unsafe_target"
	SkipHeader      = "unsafe_header"
	SkipUnsendable2 = "unsendable_h2"
)

// Unsafe returns the reason why a request cannot be sent without becoming another one on the wire, or "". White space
// and control characters in a target end it early or begin a new line (RFC 9112, 3.2); in a header they begin a new one
// (5.5).
func (r *Request) Unsafe() string {
	switch {
	case !isToken(r.Method):
		return SkipMethod
	case r.Target == "" || !isVisible(r.Target) || r.Method == "CONNECT":
		return SkipTarget
	case !isHost(r.Host) || !isFieldValue(r.UserAgent) || !isFieldValue(r.Referer) || !isFieldValue(r.BodyType):
		return SkipHeader
	}
	return ""
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func isFieldValue[T string | []byte](s T) bool {
	for i := range len(s) {
		if (s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func isHost(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && strings.IndexByte("-._:[]%", c) < 0 {
			return false
		}
	}
	return true
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
