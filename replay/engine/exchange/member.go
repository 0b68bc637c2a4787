package exchange

import (
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Member keeps the session of a client of the log from answer to answer: of one that is logged in, or of a guest who
// sends forms. Many goroutines may call it.
type Member interface {
	// IsGuest reports whether the client is not logged in.
	IsGuest() bool
	// ReadsPages reports whether the session wants the pages that its client gets.
	ReadsPages() bool
	// Body returns what a request carries, with the tokens of the page that the client last had.
	Body(r *wire.Request) string
	// Cookie returns the Cookie header of a request; "" where the session has none for it.
	Cookie(r *wire.Request) string
	// Seen takes what the answer to a request tells. It reports whether that sends the member to the login.
	Seen(r *wire.Request, told *wire.Told) (sentToLogin bool)
}

// IsMember reports whether what the answer tells is wanted.
func (s *Shot) IsMember() bool { return s.member != nil }

// ReadsPages reports whether a page that comes as the answer is wanted.
func (s *Shot) ReadsPages() bool { return s.member != nil && s.member.ReadsPages() }

// join gives a shot the session of its log's client, also where a simulated user sends it.
func (s *Session) join(shot *Shot) {
	if s.Members == nil {
		return
	}
	if member := s.Members[shot.Hit.Client]; member != nil {
		shot.member = member
	}
}

// dress puts the cookies and tokens of this moment into a member's request.
func (s *Shot) dress() {
	if s.member == nil {
		return
	}
	own := *s.Hit
	own.Cookie = s.member.Cookie(&own.Request)
	if own.Body != "" {
		own.Body = s.member.Body(&own.Request)
	}
	s.Hit = &own
	s.Flags &^= record.Member
	if own.Cookie != "" && !s.member.IsGuest() {
		s.Flags |= record.Member
	}
}

// hear passes on what an answer tells a member.
func (s *Shot) hear(told *wire.Told) {
	if s.member != nil && told != nil && s.member.Seen(&s.Request, told) && s.Flags&record.Member != 0 {
		s.Flags |= record.SentToLogin
	}
}
