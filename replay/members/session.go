package members

// A client's session: its cookies, and the tokens of the pages that it last had.

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"

	"plimsoll/replay/engine/exchange"
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

// Bounds of the pages of one client. Behind the last page are older ones, since some pages are parts of others and have
// no tokens.
const (
	maxPages        = 4
	maxPageUnpacked = 4 << 20
)

// page is a page that a client got. It is read once, by a goroutine of its own: reading takes about a millisecond, which
// whoever drives the load does not have.
type page struct {
	target string
	coding string
	packed []byte

	once   sync.Once
	tokens forms.Tokens
}

func (p *page) read() forms.Tokens {
	p.once.Do(func() {
		plain, known, err := wire.Unpack(p.coding, bytes.NewReader(p.packed))
		p.packed = nil
		if err != nil || !known {
			return
		}
		defer func() { _ = plain.Close() }()
		text, err := io.ReadAll(io.LimitReader(plain, maxPageUnpacked))
		if err == nil {
			p.tokens = forms.ReadTokens(text, p.target)
		}
	})
	return p.tokens
}

// IsGuest reports whether the client is not logged in.
func (s *session) IsGuest() bool { return s.guest }

// ReadsPages reports whether the client sends forms, and so needs the tokens of the pages before them.
func (s *session) ReadsPages() bool { return s.forms != nil }

// turn keeps the page that an answer to a request for a target was.
func (s *session) turn(target string, info *wire.SessionInfo) {
	if s.forms == nil || len(info.Page) == 0 {
		return
	}
	p := &page{target: target, coding: info.Coding, packed: info.Page}
	s.mu.Lock()
	s.pages = append([]*page{p}, s.pages[:min(len(s.pages), maxPages-1)]...)
	s.mu.Unlock()
	go p.read()
}

// Body returns what a request carries, with the tokens of the page that the client last had; of an older one, where that
// has none of the name.
func (s *session) Body(r *wire.Request) string {
	if s.forms == nil || s.place(r) == nil {
		return r.Body
	}
	s.mu.Lock()
	pages := append([]*page(nil), s.pages...)
	s.mu.Unlock()
	return s.forms.Exchange(forms.Body{Type: r.BodyType, Text: r.Body}, func(name string) (string, bool) {
		for _, p := range pages {
			if token, ok := p.read().Of(r.Target, name); ok {
				return token, true
			}
		}
		return "", false
	})
}

// Senders are the clients that send forms, and the rules for these.
type Senders struct {
	Clients []uint32
	Rules   forms.Rules
}

// Join adds sessions for the senders to those of the members: those who are logged in read pages from now on, and the
// others get a session of a guest, which keeps cookies and tokens as a browser does.
func (s *Site) Join(members map[uint32]exchange.ClientSession, senders Senders) map[uint32]exchange.ClientSession {
	all := maps.Clone(members)
	if all == nil {
		all = map[uint32]exchange.ClientSession{}
	}
	for _, client := range senders.Clients {
		if member, ok := all[client].(*session); ok {
			member.forms = &senders.Rules
			continue
		}
		guest := s.newSession(s.Login)
		guest.guest, guest.forms = true, &senders.Rules
		all[client] = guest
	}
	return all
}
