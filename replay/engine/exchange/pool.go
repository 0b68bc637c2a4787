// Package exchange is the life of a request, free of I/O: when it is due, whether it waits for a connection, on which
// one it goes out, when it is sent again, when it has taken too long, and how all that becomes a record. Whoever drives
// a life tells it the time and what came of its decisions; a fake clock and a list of calls do for a test.
package exchange

import (
	"net"
	"os"
	"slices"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

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

// Conn is one connection, as a life sees it.
type Conn struct {
	Link any // the transport's own side of it

	client *client
	shots  []*Shot // under way; over HTTP/1.x at most one
	room   int     // requests that it may have under way; 0 until it is open, and once it accepts none
	served int     // requests that were sent on it

	http2, leaving, idle, closed bool

	idleSinceNS int64
	links[Conn] // idle
}

// client is the state of one client's connections to one host.
type client struct {
	key     Key
	conns   []*Conn // open or being opened
	idle    []*Conn
	queue   []*Shot // waiting for a connection, in order
	starved bool    // waits for the cap, with fewer connections than it may have
}

// Client returns whose connection it is.
func (c *Conn) Client() Key { return c.client.key }

// IsIdle reports whether nothing is under way on it.
func (c *Conn) IsIdle() bool { return len(c.shots) == 0 }

func (c *Conn) isOpening() bool { return c.served == 0 }

func (c *Conn) chain() *links[Conn] { return &c.links }

func (c *Conn) sinceNS() int64 { return c.idleSinceNS }

// free returns a connection that can take a request; nil when there is none.
func (cl *client) free() *Conn {
	if n := len(cl.idle); n > 0 && cl.idle[n-1].room > 0 {
		return cl.idle[n-1]
	}
	for _, c := range cl.conns {
		if len(c.shots) < c.room {
			return c
		}
	}
	return nil
}

func (l *Life) submit(s *Shot, now int64) {
	s.lateNS = now - s.DueNS
	s.Key.HTTP2 = s.Proto == wire.HTTP2 && l.Target.TLS
	l.prepare(s)
	l.pending++
	l.place(s, now)
}

// prepare marks a shot of the warm-up, and gives one that repeats a logged 304 the validator of its target.
func (s *Session) prepare(shot *Shot) {
	if shot.DueNS < s.Warmup.Nanoseconds() {
		shot.Flags |= record.Warmup
	}
	if !shot.IfModifiedSince.IsZero() {
		own := *shot.Hit
		s.Validators.recall(&own.Request)
		shot.Hit = &own
	}
	s.join(shot)
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

// firstMaxOpen is how many requests an HTTP/2 connection has under way until the server has said how many it allows.
const firstMaxOpen = 100

// Opened tells that a connection is open, and that it speaks HTTP/2 where it does.
func (l *Life) Opened(c *Conn, http2 bool, connectUS, tlsUS uint32, now int64) {
	if c.closed {
		return
	}
	s := c.shots[0]
	s.ConnectUS, s.TLSUS = connectUS, tlsUS
	c.http2, c.room = http2, 1
	if http2 {
		c.room = firstMaxOpen
	}
	l.write(c, s)
	if c.client.key.HTTP2 && !http2 {
		l.fallBack(c.client, now)
	}
	l.fill(c, now)
}

// fallBack does without HTTP/2 from now on: clients may have more connections.
func (l *Life) fallBack(first *client, now int64) {
	if !l.noHTTP2 {
		l.noHTTP2 = true
		for _, cl := range l.clients {
			l.settle(cl)
		}
	}
	for l.refill(first, now) {
	}
}

// Allow sets how many requests the server of an HTTP/2 connection wants under way.
func (l *Life) Allow(c *Conn, room int, now int64) {
	if !c.closed && !c.leaving {
		c.room = max(room, 0)
		l.fill(c, now)
	}
}

// wait lets a request wait for a connection of its client.
func (l *Life) wait(cl *client, s *Shot, now int64) {
	if l.queued.Add(1) > int64(l.bounds.MaxQueued) {
		l.queued.Add(-1)
		l.settle(cl)
		l.skip(s, SkipCap, now)
		return
	}
	s.Flags |= record.Queued
	if s.StartNS == 0 && len(cl.conns) >= l.perClient(cl) && !(l.overHTTP2(cl.key) && cl.conns[0].isOpening()) {
		s.Flags |= record.ClientQueued
	}
	if s.retried {
		cl.queue = slices.Insert(cl.queue, 0, s)
	} else {
		cl.queue = append(cl.queue, s)
	}
	l.waiting.add(s)
	l.settle(cl)
}

// unqueue takes a request out of its client's queue.
func (l *Life) unqueue(cl *client, s *Shot) {
	if cl.queue[0] == s {
		cl.queue[0] = nil
		cl.queue = cl.queue[1:]
	} else {
		cl.queue = without(cl.queue, s)
	}
	if len(cl.queue) == 0 {
		cl.queue = nil
	}
	l.waiting.remove(s)
	l.queued.Add(-1)
}

// fill sends what waits for a connection, as far as it has room and will do for it.
func (l *Life) fill(c *Conn, now int64) {
	for len(c.shots) < c.room && len(c.client.queue) > 0 {
		s := c.client.queue[0]
		if c.served > 0 && l.wantsFresh(s) {
			return
		}
		l.unqueue(c.client, s)
		l.settle(c.client)
		l.send(c, s, now)
	}
}

// refill opens a connection for a request that waits for one: of this client, else of the first starved one. It returns
// whether it did.
func (l *Life) refill(cl *client, now int64) bool {
	if l.dialWaiting(cl, now) {
		return true
	}
	l.settle(cl)
	if len(l.starved) == 0 {
		return false
	}
	next := l.starved[0]
	dialed := l.dialWaiting(next, now)
	if dialed && next.starved { // the others first
		l.starved = append(l.starved[1:], next)
	}
	return dialed
}

func (l *Life) dialWaiting(cl *client, now int64) bool {
	if len(cl.queue) == 0 || len(cl.conns) >= l.perClient(cl) || !l.hasRoom(cl) {
		return false
	}
	s := cl.queue[0]
	l.unqueue(cl, s)
	l.dial(cl, s, now)
	return true
}

// settle puts a client that waits for the cap among the starved, takes out one that does no longer, and forgets one that
// has neither connections nor requests.
func (l *Life) settle(cl *client) {
	starved := len(cl.queue) > 0 && len(cl.conns) < l.perClient(cl)
	switch {
	case starved && !cl.starved:
		l.starved = append(l.starved, cl)
	case cl.starved && !starved && l.starved[0] == cl:
		l.starved[0] = nil
		l.starved = l.starved[1:]
	case cl.starved && !starved:
		l.starved = without(l.starved, cl)
	}
	cl.starved = starved
	if len(cl.conns) == 0 && len(cl.queue) == 0 && l.clients[cl.key] == cl {
		delete(l.clients, cl.key)
	}
}

// Answered tells that a request has its whole answer, and what the answer said. The next request may take the answer's
// place before it returns.
func (l *Life) Answered(c *Conn, s *Shot, answer *wire.Response, now int64) {
	if s.conn != c {
		return
	}
	l.Session.answered(s, answer)
	came := Partial{Status: answer.Status, Bytes: answer.Bytes, FirstNS: s.FirstNS}
	l.land(c, s)
	if answer.KeepAlive && s.Proto != wire.HTTP10 || c.http2 {
		l.release(c, now) // the answer may make room for the next
	} else {
		l.close(c)
		l.refill(c.client, now)
	}
	l.finish(s, now, came, record.None)
}

// answered keeps what the head of an answer says for later shots: the validator of a 200, and a member's cookies.
func (s *Session) answered(shot *Shot, answer *wire.Response) {
	shot.hear(answer.Told)
	if answer.Status == 200 {
		s.Validators.learn(&shot.Request, &answer.Version)
	}
}

// land takes a request off its connection.
func (l *Life) land(c *Conn, s *Shot) {
	if i := slices.Index(c.shots, s); i >= 0 {
		c.shots = slices.Delete(c.shots, i, i+1)
	}
	s.conn = nil
	l.flying.remove(s)
}

// finish records how a request ended and tells the plan.
func (l *Life) finish(s *Shot, now int64, came Partial, kind record.ErrorKind) {
	s.FirstNS = came.FirstNS
	l.record(s, now, came.Status, came.Bytes, kind)
	l.done(s, kind, now)
}

// record records how a shot ended at the instant now.
func (s *Session) record(shot *Shot, now int64, status int, bytes int64, kind record.ErrorKind) {
	if kind != record.None && s.Abort.Err() != nil {
		kind = record.Aborted
	}
	s.Health.note(now, kind)
	r := record.Record{
		DueNS: shot.DueNS, LagUS: record.SaturatedUS(shot.StartNS - shot.DueNS), LateUS: record.SaturatedUS(shot.lateNS),
		ConnectUS: shot.ConnectUS, TLSUS: shot.TLSUS,
		TotalUS: record.SaturatedUS(now - shot.StartNS),
		Bytes:   bytes, LoggedBytes: shot.LoggedBytes, Line: shot.Line, Client: shot.Client, Route: shot.Route,
		Status: uint16(status), LoggedStatus: shot.LoggedStatus, Error: kind, Flags: shot.Flags,
	}
	if shot.FirstNS != 0 {
		r.TTFBUS = max(1, record.SaturatedUS(shot.FirstNS-shot.StartNS))
	}
	s.Recorder.Add(&r)
}

func (l *Life) skip(s *Shot, reason string, now int64) {
	l.Recorder.Skip(reason)
	l.done(s, record.None, now)
}

func (l *Life) done(s *Shot, kind record.ErrorKind, now int64) {
	l.pending--
	if !l.plan.Done(s, kind, now) {
		return
	}
	if cl := l.clients[s.Key]; cl != nil {
		for _, c := range slices.Clone(cl.idle) {
			l.close(c)
		}
		l.refill(cl, now)
	}
}

// release reuses a connection on which a request has ended: with the next that waits for it, else it becomes idle,
// or makes room for a fresh one or for another client's.
func (l *Life) release(c *Conn, now int64) {
	l.fill(c, now)
	switch {
	case len(c.shots) > 0 || c.closed:
	case c.leaving || l.stopped || len(l.starved) > 0 || c.room > 0 && len(c.client.queue) > 0:
		l.close(c)
		l.refill(c.client, now)
	default:
		c.idle, c.idleSinceNS = true, now
		c.client.idle = append(c.client.idle, c)
		l.idle.add(c)
	}
}

// unidle takes a connection out of the idle ones, where it is one.
func (l *Life) unidle(c *Conn) {
	if n := len(c.client.idle); n > 0 && c.client.idle[n-1] == c {
		c.client.idle = c.client.idle[:n-1]
	} else {
		c.client.idle = without(c.client.idle, c)
	}
	l.idle.remove(c)
	c.idle = false
}

// close closes a connection on which nothing is under way any more. Its place is for refill to give away.
func (l *Life) close(c *Conn) {
	l.transport.Close(c)
	if c.idle {
		l.unidle(c)
	}
	c.closed = true
	c.client.conns = without(c.client.conns, c)
	l.countOpen(-1)
}

// expire gives up what has taken too long and closes connections that were idle for too long. What waits is first, so
// that it is not sent after its time on the connection of a request that timed out with it. It returns when there is
// something to do again.
func (l *Life) expire(now int64) (againNS int64) {
	for s := l.waiting.first; s != nil && l.deadlineNS(s) <= now; s = l.waiting.first {
		l.giveUpWaiting(s)
		if s.StartNS == 0 {
			s.StartNS = now
		}
		l.finish(s, now, Partial{}, record.Timeout)
	}
	for s := l.flying.first; s != nil && l.deadlineNS(s) <= now; s = l.flying.first {
		l.giveUp(s, record.Timeout, now)
	}
	for c := l.idle.first; c != nil && l.idleUntilNS(c) <= now; c = l.idle.first {
		l.close(c)
		l.refill(c.client, now)
	}
	again := Never
	if l.waiting.first != nil {
		again = l.deadlineNS(l.waiting.first)
	}
	if l.flying.first != nil {
		again = min(again, l.deadlineNS(l.flying.first))
	}
	if l.idle.first != nil {
		again = min(again, l.idleUntilNS(l.idle.first))
	}
	return again
}

// deadlineNS returns the instant at which a shot has used up its time.
func (s *Session) deadlineNS(shot *Shot) int64 { return shot.sinceNS() + s.Timeout.Nanoseconds() }

func (l *Life) idleUntilNS(c *Conn) int64 { return c.idleSinceNS + l.bounds.IdleTimeout.Nanoseconds() }

// giveUpWaiting takes a request out of the queue in which it waits, for good.
func (l *Life) giveUpWaiting(s *Shot) {
	cl := l.clients[s.Key]
	l.unqueue(cl, s)
	l.settle(cl)
}

// errNotConnected is how opening a connection ends that takes too long.
var errNotConnected = &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}

// giveUp ends a request that is under way: with its connection over HTTP/1.x, with its stream over HTTP/2.
func (l *Life) giveUp(s *Shot, kind record.ErrorKind, now int64) {
	c := s.conn
	came := Partial{}
	if c.isOpening() {
		s.ConnectUS = record.SaturatedUS(now - s.StartNS)
		if kind == record.Timeout {
			l.Health.ConnectFailed(errNotConnected)
		}
	} else {
		came = l.transport.Came(c, s)
	}
	l.land(c, s)
	if c.http2 {
		l.transport.Cancel(c, s)
		l.release(c, now)
	} else {
		l.close(c)
		l.refill(c.client, now)
	}
	l.finish(s, now, came, kind)
}

// without returns a list without one of its elements.
func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
