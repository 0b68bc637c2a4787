package engine

import (
	"context"
	"net"
	"sync"

	"plimsoll/replay/record"
)

// pool owns the connections: it gives each request to one of its client's, opens a new one, or lets it wait.
//
// A client behaves as a browser does: up to Options.PerClient connections to a host with HTTP/1.1, one with HTTP/2, kept open
// between requests. A request that finds all of them busy waits for the first that comes free, in order. So does one that would
// need a connection past Options.MaxConnections, after the longest idle connection of another client has been closed for it.
type pool struct {
	target   *Target
	headers  *Headers
	opts     Options
	clock    clock
	rec      Recorder
	health   *health
	versions *validators
	abortCtx context.Context // cancelled: leave at once

	mu       sync.Mutex
	clients  map[clientKey]*client
	all      map[net.Conn]struct{}
	open     int // connections open or being opened
	idle     idleList
	starved  []*client // without a connection, waiting for the cap
	queued   int       // requests waiting for a connection
	pending  int       // requests submitted and not done
	noHTTP2  bool      // the server chose HTTP/1.1 when offered both
	stopped  bool      // nothing more is sent
	unsent   uint64
	finished chan struct{} // closed when nothing is pending any more, once asked for
	waiting  bool
}

// clientKey is whose connections: one client's to one host.
type clientKey struct {
	client uint32
	host   string
}

// client is the state of one client's connections to one host.
type client struct {
	key     clientKey
	conns   int // open or being opened
	idle    []*h1
	queue   []*Shot // waiting, in order
	h2      *h2
	h2Dials bool
	starved bool
}

func newPool(target *Target, headers *Headers, opts Options, clk clock, rec Recorder, abort context.Context, h *health) *pool {
	return &pool{
		target: target, headers: headers, opts: opts, clock: clk, rec: rec, abortCtx: abort, health: h, versions: newValidators(opts.Revalidates),
		clients: map[clientKey]*client{}, all: map[net.Conn]struct{}{}, finished: make(chan struct{}),
	}
}

// submit sends a request now, or as soon as it may have a connection. It does not block.
func (p *pool) submit(s *Shot, key clientKey) {
	if s.DueNS < p.opts.Warmup.Nanoseconds() {
		s.flags |= record.Warmup
	}
	if !s.IfModifiedSince.IsZero() {
		p.versions.recall(s)
	}
	p.mu.Lock()
	if p.stopped {
		p.unsent++
		p.mu.Unlock()
		return
	}
	p.pending++
	cl := p.clients[key]
	if cl == nil {
		cl = &client{key: key}
		p.clients[key] = cl
	}
	send := p.place(cl, s)
	p.mu.Unlock()
	send()
}

func nothing() {}

// place decides under the lock what becomes of a request; what it returns does it, without the lock.
func (p *pool) place(cl *client, s *Shot) (send func()) {
	if p.wantsHTTP2(s) {
		return p.placeHTTP2(cl, s)
	}
	if n := len(cl.idle); n > 0 && s.Proto != HTTP10 && !s.retried {
		c := cl.idle[n-1]
		p.unidle(c)
		c.take(s)
		if len(s.Target)+len(s.Referer)+len(s.UserAgent) > bigHeadBytes {
			return func() { go c.send(s) } // would block whoever sends next
		}
		return func() { c.send(s) }
	}
	if cl.conns < p.opts.PerClient && len(cl.queue) == 0 && p.room(cl) {
		return p.dial(cl, s)
	}
	if len(cl.idle) > 0 { // it wants a fresh connection: an idle one of its own makes room
		oldest := cl.idle[0]
		p.unidle(oldest)
		oldest.discard()
		return p.dial(cl, s)
	}
	return p.wait(cl, s)
}

// bigHeadBytes fits the socket's buffer for sure, so that writing less than that does not block.
const bigHeadBytes = 8 << 10

func (p *pool) wantsHTTP2(s *Shot) bool { return s.Proto == HTTP2 && p.target.TLS && !p.noHTTP2 }

func (p *pool) placeHTTP2(cl *client, s *Shot) func() {
	switch {
	case !s.path():
		p.pending--
		return func() { p.rec.Skip(SkipUnsendable2) }
	case cl.h2 != nil:
		h := cl.h2
		return func() { h.submit(s) }
	case cl.h2Dials || !p.room(cl):
		return p.wait(cl, s)
	}
	cl.h2Dials = true
	return p.dial(cl, s)
}

// room says whether one more connection may be opened. Where the cap is reached, it closes the longest idle connection, whose
// place the client will have.
func (p *pool) room(cl *client) bool {
	if p.open < p.opts.MaxConnections {
		return true
	}
	if oldest := p.idle.oldest(); oldest != nil {
		p.unidle(oldest)
		oldest.discard()
	}
	if cl.conns == 0 && !cl.starved {
		cl.starved = true
		p.starved = append(p.starved, cl)
	}
	return false
}

// dial opens a connection for a request.
func (p *pool) dial(cl *client, s *Shot) func() {
	cl.conns++
	p.open++
	if s.startNS == 0 {
		s.startNS = p.clock.now()
	}
	return func() { go p.connect(cl, s) }
}

// wait lets a request wait for a connection of its client.
func (p *pool) wait(cl *client, s *Shot) func() {
	if p.queued >= p.opts.MaxQueued {
		p.pending--
		after := s.after
		return func() {
			p.rec.Skip(SkipCap)
			if after != nil {
				after(s, p.clock.now())
			}
		}
	}
	p.queued++
	s.flags |= record.Queued
	cl.queue = append(cl.queue, s)
	return nothing
}

// unqueue takes the first waiting request of a client; nil when there is none.
func (p *pool) unqueue(cl *client) *Shot {
	if len(cl.queue) == 0 {
		return nil
	}
	s := cl.queue[0]
	cl.queue[0] = nil
	cl.queue = cl.queue[1:]
	if len(cl.queue) == 0 {
		cl.queue = nil
	}
	p.queued--
	return s
}

// released gives a connection that has done its request the next one to send, or makes it idle. It returns false when the
// connection is to close, so that a client without one can have its place.
func (p *pool) released(c *h1) (next *Shot, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.unqueue(c.cl); s != nil {
		c.take(s)
		return s, true
	}
	if len(p.starved) > 0 || p.stopped {
		c.cur.Store(nil)
		return nil, false
	}
	c.cur.Store(nil)
	c.idleSinceNS = p.clock.now()
	c.cl.idle = append(c.cl.idle, c)
	p.idle.add(c)
	return nil, true
}

// unidle takes a connection out of the idle ones.
func (p *pool) unidle(c *h1) {
	p.idle.remove(c)
	for i, other := range c.cl.idle {
		if other == c {
			c.cl.idle = append(c.cl.idle[:i], c.cl.idle[i+1:]...)
			return
		}
	}
}

// retire takes an idle connection that the server closed out of the pool, unless it was given a request meanwhile.
func (p *pool) retire(c *h1) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.cur.Load() != nil {
		return false
	}
	p.unidle(c)
	return true
}

// gone is told of each connection that has ended, or was never opened. Its place goes to who waits for it.
func (p *pool) gone(cl *client, conn net.Conn) {
	p.mu.Lock()
	delete(p.all, conn)
	cl.conns--
	p.open--
	send := p.refill(cl)
	p.mu.Unlock()
	send()
}

// refill opens a connection for a request that waits for one: of this client, else of the first starved one.
func (p *pool) refill(cl *client) func() {
	if send := p.dialWaiting(cl); send != nil {
		return send
	}
	p.forget(cl)
	for len(p.starved) > 0 && p.open < p.opts.MaxConnections {
		next := p.starved[0]
		p.starved = p.starved[1:]
		next.starved = false
		if send := p.dialWaiting(next); send != nil {
			return send
		}
		p.forget(next)
	}
	return nothing
}

func (p *pool) dialWaiting(cl *client) func() {
	if len(cl.queue) == 0 || cl.conns >= p.opts.PerClient || cl.h2 != nil || cl.h2Dials || p.open >= p.opts.MaxConnections {
		return nil
	}
	s := p.unqueue(cl)
	cl.h2Dials = p.wantsHTTP2(s)
	return p.dial(cl, s)
}

// forget drops a client that has neither connections nor requests.
func (p *pool) forget(cl *client) {
	if cl.conns == 0 && len(cl.queue) == 0 && !cl.starved && p.clients[cl.key] == cl {
		delete(p.clients, cl.key)
	}
}

// again sends a request once more on a fresh connection, as browsers do when a kept-open connection turns out to be closed.
func (p *pool) again(cl *client, s *Shot) {
	s.retried = true
	p.rec.Retried()
	p.mu.Lock()
	send := p.place(p.known(cl), s)
	p.mu.Unlock()
	send()
}

// known is the client that the pool knows by a client's key; one that was forgotten meanwhile is known again.
func (p *pool) known(cl *client) *client {
	if current := p.clients[cl.key]; current != nil {
		return current
	}
	p.clients[cl.key] = cl
	return cl
}
