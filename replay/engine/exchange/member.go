package exchange

import (
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Member keeps the session of a client of the log from answer to answer. Many goroutines may call it.
type Member interface {
	// Cookie returns the Cookie header of a request; "" where the session has none for it.
	Cookie(r *wire.Request) string
	// Seen takes what the answer to a request tells. It reports whether that sends the member to the login.
	Seen(r *wire.Request, told *wire.Told) (sentToLogin bool)
}

// IsMember reports whether what the answer tells is wanted.
func (s *Shot) IsMember() bool { return s.member != nil }

// join gives a shot the session of its log's client, also where a simulated user sends it.
func (s *Session) join(shot *Shot) {
	if s.Members == nil {
		return
	}
	if member := s.Members[shot.Hit.Client]; member != nil {
		shot.member = member
	}
}

// dress puts the cookies of this moment into a member's request.
func (s *Shot) dress() {
	if s.member == nil {
		return
	}
	own := *s.Hit
	own.Cookie = s.member.Cookie(&own.Request)
	s.Hit = &own
	s.Flags &^= record.Member
	if own.Cookie != "" {
		s.Flags |= record.Member
	}
}

// hear passes on what an answer tells a member.
func (s *Shot) hear(told *wire.Told) {
	if s.member != nil && told != nil && s.member.Seen(&s.Request, told) && s.Flags&record.Member != 0 {
		s.Flags |= record.SentToLogin
	}
}
