// A logged request, an attempt to send it, the session of its client, and lists in order of time.

package exchange

import (
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// LoggedRequest is one request of a log: what to send, and what the log knows of its first answer. It may be shared:
// simulated users send the same ones again and again.
type LoggedRequest struct {
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

// Attempt is one sending of a logged request: its due instant, and what is measured of it. It is used once.
type Attempt struct {
	*LoggedRequest
	Client uint32 // the log's own, or a simulated user
	Key    Key
	DueNS  int64  // since the start of the run
	Head   []byte // the request as it goes out over plain HTTP/1.x; nil: it is made when it is sent
	Owner  any    // of the source

	StartNS, FirstNS int64 // of the pool and the transport; FirstNS 0: no byte came
	ConnectUS, TLSUS uint32
	Flags            record.Flags

	lateNS         int64 // from due until it was submitted, which is the generator's own
	retried        bool
	session        ClientSession // nil: a guest
	conn           *Conn
	links[Attempt] // under way, or waiting
}

func (a *Attempt) chain() *links[Attempt] { return &a.links }

// sinceNS returns the instant from which an attempt's time counts.
func (a *Attempt) sinceNS() int64 {
	if a.StartNS != 0 {
		return a.StartNS
	}
	return a.DueNS
}

// isStale reports whether an attempt that failed before its first byte found a connection that the server had closed
// while it was kept open, and should be sent again, as browsers do.
func (a *Attempt) isStale() bool {
	return a.Flags&record.Reused != 0 && a.FirstNS == 0 && !a.retried && (a.Method == "GET" || a.Method == "HEAD")
}

// ClientSession keeps what a client of the log has from answer to answer: one that is logged in, or a guest who sends
// forms. Safe for concurrent use.
type ClientSession interface {
	// IsGuest reports whether the client is not logged in.
	IsGuest() bool
	// ReadsPages reports whether the session wants the pages that its client gets.
	ReadsPages() bool
	// Body returns what a request carries, with the tokens of the page that the client last had.
	Body(r *wire.Request) string
	// Cookie returns the Cookie header of a request; "" where the session has none for it.
	Cookie(r *wire.Request) string
	// Learn takes what the answer to a request holds for the session. It reports whether that sends the member to the login.
	Learn(r *wire.Request, info *wire.SessionInfo) (sentToLogin bool)
}

// HasSession reports whether its client has a session, which learns from the answer.
func (a *Attempt) HasSession() bool { return a.session != nil }

// ReadsPages reports whether a page that comes as the answer is wanted.
func (a *Attempt) ReadsPages() bool { return a.session != nil && a.session.ReadsPages() }

// applySession puts the cookies and tokens of this moment into a member's request.
func (a *Attempt) applySession() {
	own := *a.LoggedRequest
	own.Cookie = a.session.Cookie(&own.Request)
	if own.Body != "" {
		own.Body = a.session.Body(&own.Request)
	}
	a.LoggedRequest = &own
	a.Flags &^= record.Member
	if own.Cookie != "" && !a.session.IsGuest() {
		a.Flags |= record.Member
	}
}

// learnSession gives an answer to the session.
func (a *Attempt) learnSession(info *wire.SessionInfo) {
	if info != nil && a.session.Learn(&a.Request, info) && a.Flags&record.Member != 0 {
		a.Flags |= record.SentToLogin
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
	_ element[Conn]    = (*Conn)(nil)
	_ element[Attempt] = (*Attempt)(nil)
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
