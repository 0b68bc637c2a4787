// Package exchange is the life of a request, free of I/O: whether it waits for a connection, on which one it goes out,
// when it is sent again, when it has taken too long, and how all that becomes a record. A driver tells a connection pool
// the time and the results of its decisions; tests drive one with a fake clock and a list of calls.
package exchange

import (
	"net"
	"os"
	"slices"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// ConnectionPool sends the requests of a source over the connections of their clients, and records them. Not safe for
// concurrent use.
//
// A client behaves as a browser does: up to Bounds.PerClient connections to a host with HTTP/1.1, one with HTTP/2,
// kept open between requests. A request that finds all of them busy waits for the first that comes free, in order. So
// does one that would need a connection past Bounds.MaxConnections, where no idle connection of another client can be
// closed for it.
type ConnectionPool struct {
	*RunState
	bounds    Bounds
	source    AttemptSource
	transport Transport

	clients        map[Key]*client
	open           int // connections open or being opened
	idle           list[Conn, *Conn]
	inFlight       list[Attempt, *Attempt]
	waiting        list[Attempt, *Attempt]
	waitingForSlot []*client // in the order in which they have their turn
	pending        int       // requests submitted and not done
	noHTTP2        bool      // the server chose HTTP/1.1 when offered both
	stopped        bool      // nothing more is sent
	unsent         uint64
}

// NewConnectionPool returns a pool without connections.
func NewConnectionPool(state *RunState, bounds Bounds, source AttemptSource, transport Transport) *ConnectionPool {
	return &ConnectionPool{
		RunState: state, bounds: bounds, source: source, transport: transport, clients: map[Key]*client{},
	}
}

// Turn gives up what has taken too long and submits one request that is due. It returns when to call it again: now,
// where more may be due.
func (p *ConnectionPool) Turn(now int64) (againNS int64) {
	again := p.expire(now)
	if p.stopped {
		return again
	}
	a, next := p.source.Next(now)
	if a == nil {
		return min(again, next)
	}
	a.lateNS = now - a.DueNS
	a.Key.HTTP2 = a.Proto == wire.HTTP2 && p.Target.TLS
	p.prepare(a)
	p.pending++
	p.place(a, now)
	return now
}

// IsOver reports whether nothing is under way and nothing will come.
func (p *ConnectionPool) IsOver() bool { return p.pending == 0 && (p.stopped || p.source.Ended()) }

// Unsent returns how many requests were submitted and not sent, since the pool was stopped.
func (p *ConnectionPool) Unsent() uint64 { return p.unsent }

// Conn is one connection, as a pool sees it.
type Conn struct {
	Link any // the transport's own side of it

	client   *client
	attempts []*Attempt // under way; over HTTP/1.x at most one
	room     int        // requests that it may have under way; 0 until it is open, and once it accepts none
	sent     int        // requests that were sent on it

	http2, leaving, idle, closed bool

	idleSinceNS int64
	links[Conn] // idle
}

// client is the state of one client's connections to one host.
type client struct {
	key          Key
	conns        []*Conn // open or being opened
	idle         []*Conn
	queue        []*Attempt // waiting for a connection, in order
	waitsForSlot bool       // waits for the cap, with fewer connections than it may have
}

// Client returns whose connection it is.
func (c *Conn) Client() Key { return c.client.key }

// IsIdle reports whether nothing is under way on it.
func (c *Conn) IsIdle() bool { return len(c.attempts) == 0 }

func (c *Conn) isOpening() bool { return c.sent == 0 }

func (c *Conn) chain() *links[Conn] { return &c.links }

func (c *Conn) sinceNS() int64 { return c.idleSinceNS }

// free returns a connection that can take a request; nil when there is none.
func (cl *client) free() *Conn {
	if n := len(cl.idle); n > 0 && cl.idle[n-1].room > 0 {
		return cl.idle[n-1]
	}
	for _, c := range cl.conns {
		if len(c.attempts) < c.room {
			return c
		}
	}
	return nil
}

// prepare marks an attempt of the warm-up, gives one that repeats a logged 304 the validator of its target, and each the
// session of its client of the log, also where a simulated user sends it.
func (s *RunState) prepare(a *Attempt) {
	if a.DueNS < s.Warmup.Nanoseconds() {
		a.Flags |= record.Warmup
	}
	if !a.IfModifiedSince.IsZero() {
		own := *a.LoggedRequest
		s.Validators.recall(&own.Request)
		a.LoggedRequest = &own
	}
	a.session = s.Sessions[a.LoggedRequest.Client]
}

// place decides which connection a request goes to.
func (p *ConnectionPool) place(a *Attempt, now int64) {
	http2 := p.overHTTP2(a.Key)
	if http2 && !a.IsPath() {
		p.skip(a, wire.SkipUnsendable2, now)
		return
	}
	cl := p.clients[a.Key]
	if cl == nil {
		cl = &client{key: a.Key}
		p.clients[a.Key] = cl
	}
	fresh := p.wantsFresh(a)
	if c := cl.free(); c != nil && !fresh {
		p.send(c, a, now)
		return
	}
	if fresh && len(cl.idle) > 0 && len(cl.conns) >= p.perClient(cl) {
		p.close(cl.idle[0])
	}
	if len(cl.conns) < p.perClient(cl) && (len(cl.queue) == 0 || a.retried) && p.hasRoom(cl) {
		p.dial(cl, a, now)
		return
	}
	p.wait(cl, a, now)
}

func (p *ConnectionPool) overHTTP2(key Key) bool { return key.HTTP2 && !p.noHTTP2 }

// wantsFresh reports whether a request needs a connection on which nothing was sent yet.
func (p *ConnectionPool) wantsFresh(a *Attempt) bool {
	return !p.overHTTP2(a.Key) && (a.Proto == wire.HTTP10 || a.retried)
}

func (p *ConnectionPool) perClient(cl *client) int {
	if p.overHTTP2(cl.key) {
		return 1
	}
	return p.bounds.PerClient
}

// hasRoom reports whether one more connection may be opened. Where the cap is reached, the longest idle connection is
// closed for it.
func (p *ConnectionPool) hasRoom(cl *client) bool {
	if oldest := p.idle.first; oldest != nil && p.open >= p.bounds.share() {
		p.close(oldest)
		if oldest.client != cl {
			p.updateClient(oldest.client)
		}
	}
	return p.open < p.bounds.share()
}

func (p *ConnectionPool) dial(cl *client, a *Attempt, now int64) {
	c := &Conn{client: cl, attempts: []*Attempt{a}}
	cl.conns = append(cl.conns, c)
	p.updateClient(cl)
	p.countOpen(1)
	p.start(c, a, now)
	p.transport.Open(c, a)
}

// countOpen counts a connection that is opened (1) or closed (-1).
func (p *ConnectionPool) countOpen(n int) {
	p.open += n
	if p.bounds.Count != nil {
		p.bounds.Count.Add(int64(n))
	}
}

// start makes a request one that is under way on a connection.
func (p *ConnectionPool) start(c *Conn, a *Attempt, now int64) {
	if a.StartNS == 0 {
		a.StartNS = now
	}
	if p.Target.TLS {
		a.Flags |= record.TLS
	}
	a.conn = c
	p.inFlight.add(a)
}

func (p *ConnectionPool) send(c *Conn, a *Attempt, now int64) {
	if c.idle {
		p.unidle(c)
	}
	c.attempts = append(c.attempts, a)
	p.start(c, a, now)
	p.write(c, a)
}

func (p *ConnectionPool) write(c *Conn, a *Attempt) {
	if c.sent > 0 {
		a.Flags |= record.Reused
	}
	if c.http2 {
		a.Flags |= record.HTTP2
	}
	c.sent++
	if a.session != nil {
		a.applySession()
	}
	p.transport.Send(c, a)
}

// firstMaxOpen is how many requests an HTTP/2 connection has under way until the server has said how many it allows.
const firstMaxOpen = 100

// Opened tells that a connection is open, and that it speaks HTTP/2 where it does.
func (p *ConnectionPool) Opened(c *Conn, http2 bool, connectUS, tlsUS uint32, now int64) {
	if c.closed {
		return
	}
	a := c.attempts[0]
	a.ConnectUS, a.TLSUS = connectUS, tlsUS
	c.http2, c.room = http2, 1
	if http2 {
		c.room = firstMaxOpen
	}
	p.write(c, a)
	if c.client.key.HTTP2 && !http2 {
		p.fallBack(c.client, now)
	}
	p.fill(c, now)
}

// fallBack does without HTTP/2 from now on: clients may have more connections.
func (p *ConnectionPool) fallBack(first *client, now int64) {
	if !p.noHTTP2 {
		p.noHTTP2 = true
		for _, cl := range p.clients {
			p.updateClient(cl)
		}
	}
	for p.refill(first, now) {
	}
}

// Allow sets how many requests the server of an HTTP/2 connection wants under way.
func (p *ConnectionPool) Allow(c *Conn, room int, now int64) {
	if !c.closed && !c.leaving {
		c.room = max(room, 0)
		p.fill(c, now)
	}
}

// wait lets a request wait for a connection of its client.
func (p *ConnectionPool) wait(cl *client, a *Attempt, now int64) {
	if p.queued.Add(1) > int64(p.bounds.MaxQueued) {
		p.queued.Add(-1)
		p.updateClient(cl)
		p.skip(a, SkipCap, now)
		return
	}
	a.Flags |= record.Queued
	if a.StartNS == 0 && len(cl.conns) >= p.perClient(cl) && !(p.overHTTP2(cl.key) && cl.conns[0].isOpening()) {
		a.Flags |= record.ClientQueued
	}
	if a.retried {
		cl.queue = slices.Insert(cl.queue, 0, a)
	} else {
		cl.queue = append(cl.queue, a)
	}
	p.waiting.add(a)
	p.updateClient(cl)
}

// unqueue takes a request out of its client's queue.
func (p *ConnectionPool) unqueue(cl *client, a *Attempt) {
	if cl.queue[0] == a {
		cl.queue[0] = nil
		cl.queue = cl.queue[1:]
	} else {
		cl.queue = without(cl.queue, a)
	}
	if len(cl.queue) == 0 {
		cl.queue = nil
	}
	p.waiting.remove(a)
	p.queued.Add(-1)
}

// fill sends what waits for a connection, as far as it has room and will do for it.
func (p *ConnectionPool) fill(c *Conn, now int64) {
	for len(c.attempts) < c.room && len(c.client.queue) > 0 {
		a := c.client.queue[0]
		if c.sent > 0 && p.wantsFresh(a) {
			return
		}
		p.unqueue(c.client, a)
		p.updateClient(c.client)
		p.send(c, a, now)
	}
}

// refill opens a connection for a request that waits for one: of this client, else of the first that waits for a slot.
// It returns whether it did.
func (p *ConnectionPool) refill(cl *client, now int64) bool {
	if p.dialWaiting(cl, now) {
		return true
	}
	p.updateClient(cl)
	if len(p.waitingForSlot) == 0 {
		return false
	}
	next := p.waitingForSlot[0]
	dialed := p.dialWaiting(next, now)
	if dialed && next.waitsForSlot { // the others first
		p.waitingForSlot = append(p.waitingForSlot[1:], next)
	}
	return dialed
}

func (p *ConnectionPool) dialWaiting(cl *client, now int64) bool {
	if len(cl.queue) == 0 || len(cl.conns) >= p.perClient(cl) || !p.hasRoom(cl) {
		return false
	}
	a := cl.queue[0]
	p.unqueue(cl, a)
	p.dial(cl, a, now)
	return true
}

// updateClient notes whether a client waits for a slot under the cap, and forgets one that has neither connections nor
// requests.
func (p *ConnectionPool) updateClient(cl *client) {
	waits := len(cl.queue) > 0 && len(cl.conns) < p.perClient(cl)
	switch {
	case waits && !cl.waitsForSlot:
		p.waitingForSlot = append(p.waitingForSlot, cl)
	case cl.waitsForSlot && !waits && p.waitingForSlot[0] == cl:
		p.waitingForSlot[0] = nil
		p.waitingForSlot = p.waitingForSlot[1:]
	case cl.waitsForSlot && !waits:
		p.waitingForSlot = without(p.waitingForSlot, cl)
	}
	cl.waitsForSlot = waits
	if len(cl.conns) == 0 && len(cl.queue) == 0 && p.clients[cl.key] == cl {
		delete(p.clients, cl.key)
	}
}

// Answered tells that a request has its whole answer, and what the answer said. The next request may take the answer's
// place before it returns.
func (p *ConnectionPool) Answered(c *Conn, a *Attempt, answer *wire.Response, now int64) {
	if a.conn != c {
		return
	}
	if a.session != nil {
		a.learnSession(answer.SessionInfo)
	}
	if answer.Status == 200 {
		p.Validators.learn(&a.Request, &answer.Version)
	}
	received := PartialAnswer{Status: answer.Status, Bytes: answer.Bytes, Served: answer.Served, FirstNS: a.FirstNS}
	p.detach(c, a)
	if answer.KeepAlive && a.Proto != wire.HTTP10 || c.http2 {
		p.release(c, now) // the answer may make room for the next
	} else {
		p.close(c)
		p.refill(c.client, now)
	}
	p.finish(a, now, received, record.None)
}

// detach takes a request off its connection.
func (p *ConnectionPool) detach(c *Conn, a *Attempt) {
	if i := slices.Index(c.attempts, a); i >= 0 {
		c.attempts = slices.Delete(c.attempts, i, i+1)
	}
	a.conn = nil
	p.inFlight.remove(a)
}

// finish records how a request ended and tells the source.
func (p *ConnectionPool) finish(a *Attempt, now int64, received PartialAnswer, kind record.ErrorKind) {
	a.FirstNS = received.FirstNS
	p.record(a, now, received, kind)
	p.done(a, kind, now)
}

// record records how an attempt ended at the instant now.
func (s *RunState) record(a *Attempt, now int64, received PartialAnswer, kind record.ErrorKind) {
	if kind != record.None && s.Abort.Err() != nil {
		kind = record.Aborted
	}
	s.Health.note(now, kind)
	r := record.Record{
		DueNS: a.DueNS, LagUS: record.SaturatedUS(a.StartNS - a.DueNS), LateUS: record.SaturatedUS(a.lateNS),
		ConnectUS: a.ConnectUS, TLSUS: a.TLSUS,
		TotalUS: record.SaturatedUS(now - a.StartNS),
		Bytes:   received.Bytes, LoggedBytes: a.LoggedBytes, Line: a.Line, Client: a.Client, Route: a.Route,
		Status: uint16(received.Status), LoggedStatus: a.LoggedStatus, Error: kind, Flags: a.Flags, Served: received.Served,
	}
	if a.FirstNS != 0 {
		r.TTFBUS = max(1, record.SaturatedUS(a.FirstNS-a.StartNS))
	}
	s.Recorder.Add(&r)
}

func (p *ConnectionPool) skip(a *Attempt, reason string, now int64) {
	p.Recorder.Skip(reason)
	p.done(a, record.None, now)
}

func (p *ConnectionPool) done(a *Attempt, kind record.ErrorKind, now int64) {
	p.pending--
	if !p.source.Done(a, kind, now) {
		return
	}
	if cl := p.clients[a.Key]; cl != nil {
		for _, c := range slices.Clone(cl.idle) {
			p.close(c)
		}
		p.refill(cl, now)
	}
}

// release reuses a connection on which a request has ended: with the next that waits for it, else it becomes idle,
// or makes room for a fresh one or for another client's.
func (p *ConnectionPool) release(c *Conn, now int64) {
	p.fill(c, now)
	switch {
	case len(c.attempts) > 0 || c.closed:
	case c.leaving || p.stopped || len(p.waitingForSlot) > 0 || c.room > 0 && len(c.client.queue) > 0:
		p.close(c)
		p.refill(c.client, now)
	default:
		c.idle, c.idleSinceNS = true, now
		c.client.idle = append(c.client.idle, c)
		p.idle.add(c)
	}
}

// unidle takes a connection out of the idle ones, where it is one.
func (p *ConnectionPool) unidle(c *Conn) {
	if n := len(c.client.idle); n > 0 && c.client.idle[n-1] == c {
		c.client.idle = c.client.idle[:n-1]
	} else {
		c.client.idle = without(c.client.idle, c)
	}
	p.idle.remove(c)
	c.idle = false
}

// close closes a connection on which nothing is under way any more. Its place is for refill to give away.
func (p *ConnectionPool) close(c *Conn) {
	p.transport.Close(c)
	if c.idle {
		p.unidle(c)
	}
	c.closed = true
	c.client.conns = without(c.client.conns, c)
	p.countOpen(-1)
}

// expire gives up what has taken too long and closes connections that were idle for too long. What waits is first, so
// that it is not sent after its time on the connection of a request that timed out with it. It returns when there is
// something to do again.
func (p *ConnectionPool) expire(now int64) (againNS int64) {
	for a := p.waiting.first; a != nil && p.deadlineNS(a) <= now; a = p.waiting.first {
		p.giveUpWaiting(a)
		if a.StartNS == 0 {
			a.StartNS = now
		}
		p.finish(a, now, PartialAnswer{}, record.Timeout)
	}
	for a := p.inFlight.first; a != nil && p.deadlineNS(a) <= now; a = p.inFlight.first {
		p.giveUp(a, record.Timeout, now)
	}
	for c := p.idle.first; c != nil && p.idleUntilNS(c) <= now; c = p.idle.first {
		p.close(c)
		p.refill(c.client, now)
	}
	again := Never
	if p.waiting.first != nil {
		again = p.deadlineNS(p.waiting.first)
	}
	if p.inFlight.first != nil {
		again = min(again, p.deadlineNS(p.inFlight.first))
	}
	if p.idle.first != nil {
		again = min(again, p.idleUntilNS(p.idle.first))
	}
	return again
}

// deadlineNS returns the instant at which an attempt has used up its time.
func (s *RunState) deadlineNS(a *Attempt) int64 { return a.sinceNS() + s.Timeout.Nanoseconds() }

func (p *ConnectionPool) idleUntilNS(c *Conn) int64 {
	return c.idleSinceNS + p.bounds.IdleTimeout.Nanoseconds()
}

// giveUpWaiting takes a request out of the queue in which it waits, for good.
func (p *ConnectionPool) giveUpWaiting(a *Attempt) {
	cl := p.clients[a.Key]
	p.unqueue(cl, a)
	p.updateClient(cl)
}

// errNotConnected is how opening a connection ends that takes too long.
var errNotConnected = &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}

// giveUp ends a request that is under way: with its connection over HTTP/1.x, with its stream over HTTP/2.
func (p *ConnectionPool) giveUp(a *Attempt, kind record.ErrorKind, now int64) {
	c := a.conn
	received := PartialAnswer{}
	if c.isOpening() {
		a.ConnectUS = record.SaturatedUS(now - a.StartNS)
		if kind == record.Timeout {
			p.Health.ConnectFailed(errNotConnected)
		}
	} else {
		received = p.transport.Received(c, a)
	}
	p.detach(c, a)
	if c.http2 {
		p.transport.Cancel(c, a)
		p.release(c, now)
	} else {
		p.close(c)
		p.refill(c.client, now)
	}
	p.finish(a, now, received, kind)
}

// without returns a list without one of its elements.
func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
