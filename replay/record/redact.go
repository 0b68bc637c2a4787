package record

import (
	"net/url"
	"regexp"
	"strings"
)

const redacted = "REDACTED"

// Where secrets are: in headers and query parameters of certain names, and before the @ of a URL.
var (
	secretHeader = regexp.MustCompile(`(?i)^(cookie2?|set-cookie|x-wp-nonce|.*(authorization|api-?key|token|secret|password|passwd|session|csrf|xsrf|auth).*)$`)
	secretParam  = regexp.MustCompile(`(?i)^(key|pwd|pass|sig|code|nonce|_wpnonce|sid|.*(api[_-]?key|token|secret|password|passwd|session|csrf|xsrf|auth|credential|signature).*)$`)
	userInfo     = regexp.MustCompile(`(://)[^/?#\s]*@`)
	parameter    = regexp.MustCompile(`([?&])([^=&#\s]+)=([^&#\s]*)`)
)

// RedactArgs returns a command line that may be kept: without the values of secret headers, without user info in URLs
// and without secret query parameters. It returns a new slice.
func RedactArgs(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		flag, value := splitFlag(arg)
		out[i] = flag + redact(value)
	}
	return out
}

// splitFlag cuts "--header=K: V", "-HK: V" and "-H=K: V" before the value.
func splitFlag(arg string) (flag, value string) {
	switch {
	case strings.HasPrefix(arg, "-H="):
		return arg[:3], arg[3:]
	case strings.HasPrefix(arg, "-H"):
		return arg[:2], arg[2:]
	case strings.HasPrefix(arg, "--"):
		if name, value, ok := strings.Cut(arg, "="); ok {
			return name + "=", value
		}
	}
	return "", arg
}

func redact(value string) string {
	if name, _, ok := strings.Cut(value, ":"); ok && secretHeader.MatchString(strings.TrimSpace(name)) {
		return name + ": " + redacted
	}
	value = userInfo.ReplaceAllString(value, "${1}"+redacted+"@")
	return parameter.ReplaceAllStringFunc(value, func(pair string) string {
		name, _, _ := strings.Cut(pair[1:], "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		if !secretParam.MatchString(plain) {
			return pair
		}
		return pair[:1] + name + "=" + redacted
	})
}
