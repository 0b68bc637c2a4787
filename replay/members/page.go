package members

import (
	"bytes"
	"io"
	"maps"
	"sync"

	"plimsoll/replay/coding"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/forms"
)

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
		plain, known, err := coding.Unpacked(p.coding, bytes.NewReader(p.packed))
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
