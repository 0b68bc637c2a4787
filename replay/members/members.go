// Package members logs clients of a log in: it reads accounts, finds who was a member, sends the site's login form, and
// keeps the cookies of each client in memory.
package members

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/url"
	"regexp"
	"strings"

	"plimsoll/replay/accesslog"
)

// Account is one account of the site under test. Only its name may be shown.
type Account struct {
	Name     string
	password string
}

// ParseAccounts reads a file of accounts: NAME:PASSWORD, one a line; empty lines and those with # at their begin do not
// count. The name ends at the first colon. Errors name lines and never repeat them, since they hold passwords.
func ParseAccounts(text string) ([]Account, error) {
	var accounts []Account
	var wrong []error
	known := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, password, _ := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if name == "" || password == "" {
			wrong = append(wrong, fmt.Errorf("line %d is not an account: write NAME:PASSWORD", i+1))
			continue
		}
		if before := known[name]; before > 0 {
			wrong = append(wrong, fmt.Errorf("line %d has the same name as line %d: remove one of them", i+1, before))
			continue
		}
		known[name] = i + 1
		accounts = append(accounts, Account{name, password})
	}
	if len(accounts) == 0 && len(wrong) == 0 {
		wrong = append(wrong, errors.New("the file holds no account: write NAME:PASSWORD, one per line"))
	}
	return accounts, errors.Join(wrong...)
}

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

// Signs are what shows that a client of a log is a member.
type Signs struct {
	Match []*regexp.Regexp // of a target that only members get
	Share float64          // of all clients, drawn by Seed in place of the log's signs; 0: by the signs
	Seed  int64
	Login Place // of the site; the usual ones are known
}

// Marks reports whether a request of a client says that this is a member. target is the request's, as it was sent.
func (s *Signs) Marks(r *accesslog.Request, client uint32, target []byte) bool {
	if s.Share > 0 {
		return s.isDrawn(client)
	}
	if len(r.User) > 0 || s.isLogin(r, target) || isAdminPage(r, target) {
		return true
	}
	for _, re := range s.Match {
		if re.Match(target) {
			return true
		}
	}
	return false
}

// isDrawn reports whether a client is among the share, the same in every run with this seed.
func (s *Signs) isDrawn(client uint32) bool {
	var text [12]byte
	binary.LittleEndian.PutUint64(text[:], uint64(s.Seed))
	binary.LittleEndian.PutUint32(text[8:], client)
	h := fnv.New64a()
	_, _ = h.Write(text[:])
	mixed := h.Sum64()
	mixed ^= mixed >> 33 // FNV alone leaves the high bits uneven; this is the finalizer of MurmurHash3
	mixed *= 0xff51afd7ed558ccd
	mixed ^= mixed >> 33
	return float64(mixed)/math.MaxUint64 < s.Share
}

// loginTarget matches where WordPress and XenForo take logins.
var loginTarget = regexp.MustCompile(`(?:/wp-login\.php(?:\?|$)|/login/login/?(?:\?|$)|/index\.php\?login(?:/login)?/?(?:&|$))`)

// isLogin reports whether a login went through, which redirects: a wrong password gets the form again. So robots
// that guess passwords are not members.
func (s *Signs) isLogin(r *accesslog.Request, target []byte) bool {
	if string(r.Method) != "POST" || r.Status != 0 && (r.Status < 300 || r.Status > 399) {
		return false
	}
	return loginTarget.Match(target) || !s.Login.IsZero() && s.Login.IsAt(string(target))
}

// openToGuests matches what is under wp-admin and answers guests too.
var openToGuests = regexp.MustCompile(
	`/wp-admin/(?:(?:admin-ajax|admin-post|load-styles|load-scripts|install|upgrade|setup-config)\.php|(?:css|js|images)/)`)

// isAdminPage reports whether a page under wp-admin was shown. Guests are redirected to the login there.
func isAdminPage(r *accesslog.Request, target []byte) bool {
	shown := r.Status == 0 || r.Status >= 200 && r.Status < 300
	path, _, _ := bytes.Cut(target, []byte{'?'})
	return shown && bytes.Contains(path, []byte("/wp-admin/")) && !openToGuests.Match(path)
}
