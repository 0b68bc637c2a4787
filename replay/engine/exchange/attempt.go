// A request of the log, one sending of it, the session of its client, and lists of what is in order of time.

package exchange

import (
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Hit is one request of a log: what to send, and what the log knows of its first answer.
type Hit struct {
	wire.Request
	Client       uint32
	Route        uint16
	LoggedStatus uint16
	LoggedBytes  int64
	Line         uint64
}

// Key names whose connections a request uses: those of one client to one host by one protocol.
type Key struct {
	Client uint32
	HTTP2  bool
	Host   string
}

// Shot is one sending of a hit: its due instant, and what is measured of it. A shot is used once. Hits may be shared:
// simulated users send the same ones again and again.
type Shot struct {
	*Hit
	Client uint32 // the hit's own, or a simulated user
	Key    Key
	DueNS  int64  // since the start of the run
	Head   []byte // the request as it goes out over plain HTTP/1.x; nil: it is made when it is sent
	Owner  any    // of the plan

	StartNS, FirstNS int64 // of the life and the transport; FirstNS 0: no byte came
	ConnectUS, TLSUS uint32
	Flags            record.Flags

	lateNS      int64 // from due until it was submitted, which is the generator's own
	retried     bool
	member      Member // nil: a guest
	conn        *Conn
	links[Shot] // under way, or waiting
}

// Of makes an empty shot one of a hit, by the client of the log.
func (s *Shot) Of(hit *Hit, dueNS int64) *Shot {
	s.Hit, s.Client, s.DueNS = hit, hit.Client, dueNS
	return s
}

func (s *Shot) chain() *links[Shot] { return &s.links }

// sinceNS returns the instant from which a shot's time counts.
func (s *Shot) sinceNS() int64 {
	if s.StartNS != 0 {
		return s.StartNS
	}
	return s.DueNS
}

// isStale reports whether a shot that failed before its first byte found a connection that the server had closed while
// it was kept open, and should be sent again, as browsers do.
func (s *Shot) isStale() bool {
	return s.Flags&record.Reused != 0 && s.FirstNS == 0 && !s.retried && (s.Method == "GET" || s.Method == "HEAD")
}

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

// links chain an element to its neighbours in a list.
type links[T any] struct{ older, newer *T }

// element is what a list holds.
type element[T any] interface {
	chain() *links[T]
	sinceNS() int64 // the instant by which the list is in order
}

var (
	_ element[Conn] = (*Conn)(nil)
	_ element[Shot] = (*Shot)(nil)
)

// linked is an element that is known by its address.
type linked[T any] interface {
	*T
	element[T]
}

// list holds elements in the order of an instant, which is that of their time-outs. It is linked through the elements
// themselves: taking one out costs no search.
type list[T any, P linked[T]] struct{ first, last P }

// add puts an element in its place, which is nearly always at the end.
func (l *list[T, P]) add(one P) {
	after := l.last
	for after != nil && after.sinceNS() > one.sinceNS() {
		after = after.chain().older
	}
	before := l.first
	if after != nil {
		before = after.chain().newer
	}
	*one.chain() = links[T]{after, before}
	l.join(after, one)
	l.join(one, before)
}

func (l *list[T, P]) remove(one P) {
	l.join(one.chain().older, one.chain().newer)
	*one.chain() = links[T]{}
}

// join makes two elements neighbours; nil is the end of the list.
func (l *list[T, P]) join(older, newer P) {
	if older != nil {
		older.chain().newer = newer
	} else {
		l.first = newer
	}
	if newer != nil {
		newer.chain().older = older
	} else {
		l.last = older
	}
}
