package exchange

import (
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Bounds are the limits of a life.
type Bounds struct {
	IdleTimeout    time.Duration // how long a connection is kept open without requests
	MaxConnections int           // open at once, of all lives
	Lives          *atomic.Int64 // that share them; nil: there is one
	Number         int           // of this life, from 0
	MaxQueued      int           // requests of all lives waiting for a connection; past that they are skipped
	PerClient      int           // HTTP/1.1 connections of one client
	Count          *atomic.Int64 // of the connections that are open, of all lives; nil: nobody asks
}

// most returns this life's share of the connections.
func (b *Bounds) most() int {
	if b.Lives == nil {
		return b.MaxConnections
	}
	n := int(b.Lives.Load())
	if b.Number < b.MaxConnections%n {
		return b.MaxConnections/n + 1
	}
	return b.MaxConnections / n
}

// Plan says what is due when.
type Plan interface {
	// Next returns a request that is due at now; else nil, and when to ask again.
	Next(now int64) (s *Shot, againNS int64)
	// Done tells that a request has ended, or was skipped. It returns whether its client will not come back.
	Done(s *Shot, kind record.ErrorKind, now int64) (leaves bool)
	// Ended reports whether nothing is to come but by Done.
	Ended() bool
}

// Never is later than any run ends.
const Never = int64(1) << 62

// Transport does what a life decides. Its methods do not block and do not call the life; results arrive later.
type Transport interface {
	Open(c *Conn, s *Shot) // opens a connection for a request; → Opened, OpenFailed
	Send(c *Conn, s *Shot) // → Answered, Failed, Refused, Closed
	Cancel(c *Conn, s *Shot)
	Close(c *Conn)
	Came(c *Conn, s *Shot) Partial
}

// Partial is what has come of an answer.
type Partial struct {
	Status  int
	Bytes   int64
	FirstNS int64
}

// SkipCap is the reason for not sending a request that found too many others waiting.
const SkipCap = "cap_reached"

// firstMaxOpen is how many requests an HTTP/2 connection has under way until the server has said how many it allows.
const firstMaxOpen = 100

// Life is what becomes of the requests of a plan. It is for one goroutine at a time.
//
// A client behaves as a browser does: up to Bounds.PerClient connections to a host with HTTP/1.1, one with HTTP/2,
// kept open between requests. A request that finds all of them busy waits for the first that comes free, in order. So
// does one that would need a connection past Bounds.MaxConnections, where no idle connection of another client can be
// closed for it.
type Life struct {
	*Session
	bounds    Bounds
	plan      Plan
	transport Transport

	clients map[Key]*client
	open    int // connections open or being opened
	idle    list[Conn, *Conn]
	flying  list[Shot, *Shot]
	waiting list[Shot, *Shot]
	starved []*client // in the order in which they have their turn
	pending int       // requests submitted and not done
	noHTTP2 bool      // the server chose HTTP/1.1 when offered both
	stopped bool      // nothing more is sent
	unsent  uint64
}

// NewLife returns a life without connections.
func NewLife(session *Session, bounds Bounds, plan Plan, transport Transport) *Life {
	return &Life{
		Session: session, bounds: bounds, plan: plan, transport: transport, clients: map[Key]*client{},
	}
}

// Turn gives up what has taken too long and submits one request that is due. It returns when to call it again: now,
// where more may be due.
func (l *Life) Turn(now int64) (againNS int64) {
	again := l.expire(now)
	if l.stopped {
		return again
	}
	s, next := l.plan.Next(now)
	if s == nil {
		return min(again, next)
	}
	l.submit(s, now)
	return now
}

// IsOver reports whether nothing is under way and nothing will come.
func (l *Life) IsOver() bool { return l.pending == 0 && (l.stopped || l.plan.Ended()) }

// Unsent returns how many requests were submitted and not sent, since the life was stopped.
func (l *Life) Unsent() uint64 { return l.unsent }

func (l *Life) submit(s *Shot, now int64) {
	s.lateNS = now - s.DueNS
	s.Key.HTTP2 = s.Proto == wire.HTTP2 && l.Target.TLS
	l.prepare(s)
	l.pending++
	l.place(s, now)
}

// place decides which connection a request goes to.
func (l *Life) place(s *Shot, now int64) {
	http2 := l.overHTTP2(s.Key)
	if http2 && !s.IsPath() {
		l.skip(s, wire.SkipUnsendable2, now)
		return
	}
	cl := l.clients[s.Key]
	if cl == nil {
		cl = &client{key: s.Key}
		l.clients[s.Key] = cl
	}
	fresh := l.wantsFresh(s)
	if c := cl.free(); c != nil && !fresh {
		l.send(c, s, now)
		return
	}
	if fresh && len(cl.idle) > 0 && len(cl.conns) >= l.perClient(cl) {
		l.close(cl.idle[0])
	}
	if len(cl.conns) < l.perClient(cl) && (len(cl.queue) == 0 || s.retried) && l.hasRoom(cl) {
		l.dial(cl, s, now)
		return
	}
	l.wait(cl, s, now)
}

func (l *Life) overHTTP2(key Key) bool { return key.HTTP2 && !l.noHTTP2 }

// wantsFresh reports whether a request needs a connection on which nothing was sent yet.
func (l *Life) wantsFresh(s *Shot) bool {
	return !l.overHTTP2(s.Key) && (s.Proto == wire.HTTP10 || s.retried)
}

func (l *Life) perClient(cl *client) int {
	if l.overHTTP2(cl.key) {
		return 1
	}
	return l.bounds.PerClient
}

// hasRoom reports whether one more connection may be opened. Where the cap is reached, the longest idle connection is
// closed for it.
func (l *Life) hasRoom(cl *client) bool {
	if oldest := l.idle.first; oldest != nil && l.open >= l.bounds.most() {
		l.close(oldest)
		if oldest.client != cl {
			l.settle(oldest.client)
		}
	}
	return l.open < l.bounds.most()
}

func (l *Life) dial(cl *client, s *Shot, now int64) {
	c := &Conn{client: cl, shots: []*Shot{s}}
	cl.conns = append(cl.conns, c)
	l.settle(cl)
	l.countOpen(1)
	l.start(c, s, now)
	l.transport.Open(c, s)
}

// countOpen counts a connection that is opened (1) or closed (-1).
func (l *Life) countOpen(n int) {
	l.open += n
	if l.bounds.Count != nil {
		l.bounds.Count.Add(int64(n))
	}
}

// start makes a request one that is under way on a connection.
func (l *Life) start(c *Conn, s *Shot, now int64) {
	if s.StartNS == 0 {
		s.StartNS = now
	}
	if l.Target.TLS {
		s.Flags |= record.TLS
	}
	s.conn = c
	l.flying.add(s)
}

func (l *Life) send(c *Conn, s *Shot, now int64) {
	if c.idle {
		l.unidle(c)
	}
	c.shots = append(c.shots, s)
	l.start(c, s, now)
	l.write(c, s)
}

func (l *Life) write(c *Conn, s *Shot) {
	if c.served > 0 {
		s.Flags |= record.Reused
	}
	if c.http2 {
		s.Flags |= record.HTTP2
	}
	c.served++
	s.dress()
	l.transport.Send(c, s)
}
