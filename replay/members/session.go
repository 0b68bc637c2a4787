package members

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/forms"
)

// Bounds of one client's cookies, near those of browsers and of what servers take.
const (
	maxCookies      = 64
	maxCookieBytes  = 4 << 10
	maxCookieHeader = 8 << 10
)

// session holds the cookies of one client, in memory only. They go to the host that gave them, and to no other.
type session struct {
	host  string
	login Place
	jar   *cookiejar.Jar

	mu         sync.Mutex
	guest      bool            // is not logged in
	forms      *forms.Rules    // nil: this client sends no bodies, and needs no tokens
	known      map[string]bool // the cookies that were taken, by name and path
	everywhere string          // the host that all requests have, whatever the log says; "": they have their own
	pages      []*page         // that had tokens or may have them, the last one first
}

func newSession(host, everywhere string, login Place) *session {
	jar, _ := cookiejar.New(nil) // it fails on no options
	return &session{host: target.ServerName(host), everywhere: everywhere, login: login, jar: jar, known: map[string]bool{}}
}

// Cookie returns the Cookie header of a request; "" for other hosts.
func (s *session) Cookie(r *wire.Request) string {
	at := s.place(r)
	if at == nil {
		return ""
	}
	var header strings.Builder
	for _, c := range s.jar.Cookies(at) {
		pair := c.Name + "=" + c.Value
		if c.Quoted {
			pair = c.Name + `="` + c.Value + `"`
		}
		if header.Len()+len(pair)+2 > maxCookieHeader {
			continue
		}
		if header.Len() > 0 {
			header.WriteString("; ")
		}
		header.WriteString(pair)
	}
	return header.String()
}

// Learn takes the cookies of an answer, and reports whether it sends the member to the login.
func (s *session) Learn(r *wire.Request, info *wire.SessionInfo) (sentToLogin bool) {
	if at := s.place(r); at != nil {
		s.take(at, info.SetCookie)
		s.turn(r.Target, info)
	}
	return s.login.leadsHere(r.Target, info.Location)
}

// take keeps cookies as browsers do, except for Secure: a clone is often asked over plain HTTP where the site had TLS
// in front of it, and the password went the same way. It returns how many it kept.
func (s *session) take(at *url.URL, lines []string) (kept int) {
	for _, line := range lines {
		c, err := http.ParseSetCookie(line)
		if err != nil || len(c.Name)+len(c.Value) > maxCookieBytes || !s.isOurs(c.Domain) || !s.hasRoom(c.Name+";"+c.Path) {
			continue
		}
		c.Secure = false
		s.jar.SetCookies(at, []*http.Cookie{c})
		kept++
	}
	return kept
}

// isOurs reports whether a cookie of a domain is for the session's host.
func (s *session) isOurs(domain string) bool {
	domain = strings.ToLower(strings.TrimPrefix(domain, "."))
	host := strings.ToLower(s.host)
	return domain == "" || host == domain || strings.HasSuffix(host, "."+domain)
}

func (s *session) hasRoom(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known[name] && len(s.known) >= maxCookies {
		return false
	}
	s.known[name] = true
	return true
}

// place returns where a request goes as the cookies see it; nil where that is another host.
func (s *session) place(r *wire.Request) *url.URL {
	if !strings.HasPrefix(r.Target, "/") || s.everywhere == "" && r.Host != "" && !strings.EqualFold(target.ServerName(r.Host), s.host) {
		return nil
	}
	path, _, _ := strings.Cut(r.Target, "?")
	return &url.URL{Scheme: "http", Host: s.host, Path: path}
}
