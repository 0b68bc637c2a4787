package record

import (
	"net/url"
	"regexp"
	"strings"
)

const redacted = "REDACTED"

// Names of headers and query parameters whose values are secrets.
var (
	secretHeader = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie2?|set-cookie|x-wp-nonce|.*(api-?key|token|secret|password|passwd|session|csrf|xsrf|auth).*)$`)
	secretParam  = regexp.MustCompile(`(?i)^(key|pwd|pass|sig|signature|code|nonce|_wpnonce|sid|.*(api_?-?key|token|secret|password|passwd|session|csrf|xsrf|auth|credential|signature).*)$`)
)

// RedactArgs is a command line fit to be kept: without the values of secret headers, without user info in URLs
// and without secret query parameters. It returns a new slice.
func RedactArgs(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = redactArg(arg)
	}
	return out
}

func redactArg(arg string) string {
	flag, value := "", arg
	if strings.HasPrefix(arg, "-") {
		if f, v, ok := strings.Cut(arg, "="); ok {
			flag, value = f+"=", v
		} else if strings.HasPrefix(arg, "-H") && !strings.HasPrefix(arg, "--") {
			flag, value = "-H", arg[2:]
		}
	}
	if strings.Contains(value, "://") {
		return flag + redactURL(value)
	}
	return flag + redactHeader(value)
}

func redactHeader(value string) string {
	name, _, ok := strings.Cut(value, ":")
	if ok && secretHeader.MatchString(strings.TrimSpace(name)) {
		return name + ": " + redacted
	}
	return value
}

// redactURL works on the text, so that a URL that does not parse loses its secrets too.
func redactURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = redacted + host[at:]
	}
	path, query, ok := strings.Cut(path, "?")
	if ok {
		path += "?" + redactQuery(query)
	}
	return redactHeader(scheme + "://" + host + path)
}

func redactQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, ok := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		if ok && secretParam.MatchString(plain) {
			pairs[i] = name + "=" + redacted
		}
	}
	return strings.Join(pairs, "&")
}
