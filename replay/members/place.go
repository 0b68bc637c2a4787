package members

import (
	"net/url"
	"strings"
)

// Place is where a site's login is: a path, and on sites without rewritten addresses the begin of a query.
type Place struct{ path, query string }

// ParsePlace reads a target such as /wp-login.php, /login/ or /index.php?login/. ok is false where it has no path.
func ParsePlace(target string) (p Place, ok bool) {
	if !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
		return p, false
	}
	for _, c := range []byte(target) {
		if c <= ' ' || c >= 0x7f {
			return p, false
		}
	}
	p.path, p.query, _ = strings.Cut(target, "?")
	return p, true
}

// IsZero reports whether there is no login.
func (p Place) IsZero() bool { return p.path == "" }

func (p Place) String() string {
	if p.query == "" {
		return p.path
	}
	return p.path + "?" + p.query
}

// IsAt reports whether a target is the login or what is below it, whatever parameters it has.
func (p Place) IsAt(target string) bool {
	path, query, _ := strings.Cut(target, "?")
	if p.query != "" {
		return path == p.path && isBelow(query, strings.TrimSuffix(p.query, "/"), "/&=")
	}
	return isBelow(path, strings.TrimSuffix(p.path, "/"), "/")
}

// isBelow reports whether a text is a begin, alone or with one of these characters after it.
func isBelow(text, begin, after string) bool {
	rest, found := strings.CutPrefix(text, begin)
	return found && (rest == "" || strings.IndexByte(after, rest[0]) >= 0)
}

// leadsHere reports whether a redirect in the answer to a request at one target leads to the login.
func (p Place) leadsHere(from, location string) bool {
	base, err := url.Parse("http://site/")
	if err != nil || location == "" {
		return false
	}
	if base, err = base.Parse(from); err != nil {
		return false
	}
	to, err := base.Parse(location)
	return err == nil && !p.IsAt(from) && p.IsAt(to.RequestURI())
}
