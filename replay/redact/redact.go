// Package redact takes secrets out of what is kept or shown.
package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// Redacted stands for a secret.
const Redacted = "REDACTED"

// secretName matches the names of headers, parameters and flags whose values are secrets. It has words that are enough
// anywhere in a name, and short ones that count only at its end: "author" is not "auth", and "keyword" is not "key".
// plimsoll/common/hostile.py has the same; tests/fixtures/secrets.json holds both to it.
const secretName = `(?:[\w-]*(?:token|secret|passw(?:or)?d|passphrase|sess(?:ion|id)|csrf|xsrf|credential|signature|cookie|nonce|jwt|bearer|` +
	`api[_-]?key|auth(?:[a-np-z0-9_-]|ori[sz]|\b))[\w-]*|(?:[\w-]*[_-])?(?:key|pwd|pass|sig|sid|otp))`

// Where secrets are: in headers and parameters of such names, behind the words Bearer and Basic, and before the @ of a URL.
var (
	secretHeader    = regexp.MustCompile(`(?im)^([ \t]*` + secretName + `[ \t]*:).*$`)
	secretScheme    = regexp.MustCompile(`(?im)^([ \t]*[\w-]+[ \t]*:[ \t]*(?:bearer|basic))[ \t]+\S.*$`)
	secretParameter = regexp.MustCompile(`(?i)(^|[^\w-]|%[0-9a-f]{2})(` + secretName + `|code)(=|%3D)[^&#\s"']+`)
	userInfo        = regexp.MustCompile(`(://)[^/?#\s]*@`)
	parameter       = regexp.MustCompile(`([?&])([^=&?#\s]*)=[^&#\s"']+`)
	wholeName       = regexp.MustCompile(`(?i)^(?:` + secretName + `|code)$`)
)

// Args returns a command line that may be kept: without the values of secret headers, without user info in URLs
// and without secret parameters. It returns a new slice.
func Args(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		flag, value := splitFlag(arg)
		out[i] = flag + redact(value)
	}
	return out
}

// Where secrets are in a line of a log, whose fields nobody tells apart: in headers of such names as JSON and HAR have
// them and as they went over the wire, behind the names of schemes, and in lists of cookies.
var (
	logHeaders = []*regexp.Regexp{
		regexp.MustCompile(`(?i)(["'](?:[\w.-]*[._-])?` + secretName + `\\?["']\s*:\s*)(?:\[[^\]]*|\\?"(?:[^"\\]|\\.)*|[^\s",}]+)`),
		regexp.MustCompile(`(?i)(["']name\\?["']\s*:\s*\\?["']` + secretName + `\\?["']\s*,\s*\\?["']value\\?["']\s*:\s*)\\?"(?:[^"\\]|\\.)*`),
		regexp.MustCompile(`(?i)((?:^|[^\w-])` + secretName + `[ \t]*:[ \t]*)[^"'\\\r\n]+`),
		regexp.MustCompile(`(?i)(\b(?:bearer|basic|digest|negotiate)[ +])[^\s"'\\]+`),
	}
	logCookies = regexp.MustCompile(`[\w.%-]+=[^;\s"']*(?:;[+ ]*[\w.%-]+=[^;\s"']*)+|(?i:wordpress_\w+=[^;\s"']*)`)
	logCookie  = regexp.MustCompile(`=[^;\s"']+`)
)

// Line returns a line of a log without its secrets. It takes away too much rather than too little.
func Line(line string) string {
	line = redact(line)
	for _, header := range logHeaders {
		line = header.ReplaceAllString(line, "${1}"+Redacted)
	}
	return logCookies.ReplaceAllStringFunc(line, func(list string) string {
		return logCookie.ReplaceAllString(list, "="+Redacted)
	})
}

// HoldsSecret reports whether a header line has a value that must not be shown.
func HoldsSecret(line string) bool {
	_, value, _ := strings.Cut(line, ":")
	return strings.TrimSpace(value) != "" && redact(line) != line
}

// splitFlag cuts "--header=K: V", "-HK: V" and "-H=K: V" before the value.
func splitFlag(arg string) (flag, value string) {
	switch {
	case strings.HasPrefix(arg, "-H="):
		return arg[:3], arg[3:]
	case strings.HasPrefix(arg, "-H"):
		return arg[:2], arg[2:]
	case strings.HasPrefix(arg, "--header="):
		return arg[:9], arg[9:]
	}
	return "", arg
}

func redact(text string) string {
	text = secretHeader.ReplaceAllString(text, "${1} "+Redacted)
	text = secretScheme.ReplaceAllString(text, "${1} "+Redacted)
	text = userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = secretParameter.ReplaceAllString(text, "${1}${2}${3}"+Redacted)
	return parameter.ReplaceAllStringFunc(text, func(pair string) string {
		name, _, _ := strings.Cut(pair[1:], "=")
		if plain, err := url.QueryUnescape(name); err != nil || !wholeName.MatchString(plain) {
			return pair
		}
		return pair[:1] + name + "=" + Redacted
	})
}
