package same

import (
	"bytes"
	"net"
	"regexp"
	"strings"
)

// ownSite stands for a side's own address in what is compared.
const ownSite = "site.invalid"

// ownLinks takes a side's own name out of links, so that two sites at different addresses have the same pages. It knows
// them plain (//shop.example), with JSON's backslashes (\/\/shop.example) and percent-encoded.
type ownLinks struct {
	scheme string
	links  *regexp.Regexp
}

// ids finds what feeds and WordPress's REST interface call a post by. It is an address that leads nobody anywhere: that
// at which the post was once written, which a clone under another name keeps, or has rewritten with all others.
var ids = regexp.MustCompile(`(<guid isPermaLink="false">|"guid":\{"rendered":")https?:(//|\\/\\/)[^/\\<"]+`)

// newOwnLinks takes a base URL's scheme and its host, with its port where that is not the scheme's own.
func newOwnLinks(scheme, host string) *ownLinks {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	ports := map[string]string{"http": "80", "https": "443"}
	written := regexp.QuoteMeta(name)
	if strings.Contains(name, ":") { // IPv6
		written = `(?:\[|%5B)` + strings.ReplaceAll(written, ":", "(?::|%3A)") + `(?:\]|%5D)`
	}
	switch {
	case port == "" || port == ports[scheme]:
		written += `(?:(?::|%3A)` + ports[scheme] + `)?`
	default:
		written += `(?::|%3A)` + port
	}
	return &ownLinks{scheme, regexp.MustCompile(`(?i)(https?(?::|%3A))?(//|\\/\\/|%2F%2F)` + written)}
}

// normalise returns a text in which links to the side itself name no host, and no scheme where it is the side's own;
// nor do the ids of posts. A longer name that only begins like the side's own stays.
func (o *ownLinks) normalise(text []byte) []byte {
	if bytes.Contains(text, []byte("guid")) {
		text = ids.ReplaceAll(text, []byte("${1}site:${2}"+ownSite))
	}
	var out []byte
	done := 0
	for _, at := range o.links.FindAllSubmatchIndex(text, -1) {
		if continues(text[at[1]:]) {
			continue
		}
		out = append(out, text[done:at[0]]...)
		if at[2] >= 0 {
			scheme := text[at[2]:at[3]]
			named := bytes.TrimSuffix(bytes.TrimSuffix(bytes.ToLower(scheme), []byte("%3a")), []byte(":"))
			if string(named) == o.scheme {
				out = append(out, "site"...)
				out = append(out, scheme[len(named):]...)
			} else {
				out = append(out, scheme...)
			}
		}
		out = append(append(out, text[at[4]:at[5]]...), ownSite...)
		done = at[1]
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// continues reports whether a host name goes on after the place at which it should end.
func continues(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	switch c := rest[0]; {
	case c == '.' || c == ':':
		return len(rest) > 1 && (isWord(rest[1]) && (c == '.' || isDigit(rest[1])))
	case c == '-':
		return true
	case c == '%':
		return bytes.HasPrefix(bytes.ToLower(rest), []byte("%3a")) && len(rest) > 3 && isDigit(rest[3])
	default:
		return isWord(c)
	}
}
