// Package pool owns the connections of a run: it gives each request to a connection of its client, opens a new one, or
// lets it wait.
package pool

import (
	"net"
	"sync"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
)

// Options bound the pool.
type Options struct {
	IdleTimeout    time.Duration // how long a connection is kept open without requests
	MaxConnections int           // open at once
	MaxQueued      int           // requests waiting for a connection; past that they are skipped
	PerClient      int           // HTTP/1.1 connections of one client
}

// SkipCap is the reason for not sending a request that found too many others waiting.
const SkipCap = "cap_reached"

// Pool owns the connections of a run.
//
// A client behaves as a browser does: up to Options.PerClient connections to a host with HTTP/1.1, one with HTTP/2,
// kept open between requests. A request that finds all of them busy waits for the first that comes free, in order. So
// does one that would need a connection past Options.MaxConnections, after the longest idle connection of another
// client has been closed for it.
type Pool struct {
	*exchange.Session
	opts Options

	mu       sync.Mutex
	clients  map[Key]*client
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

// New returns a pool without connections.
func New(session *exchange.Session, opts Options) *Pool {
	return &Pool{
		Session: session, opts: opts,
		clients: map[Key]*client{}, all: map[net.Conn]struct{}{}, finished: make(chan struct{}),
	}
}

// Submit sends a request now, or as soon as it may have a connection. It does not block.
func (p *Pool) Submit(s *exchange.Shot, key Key) {
	p.Prepare(s)
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

// place decides under the lock what becomes of a request. The function that it returns does it, without the lock.
func (p *Pool) place(cl *client, s *exchange.Shot) (send func()) {
	if p.wantsHTTP2(s) {
		return p.placeHTTP2(cl, s)
	}
	if n := len(cl.idle); n > 0 && s.Proto != wire.HTTP10 && !s.Retried {
		c := cl.idle[n-1]
		p.unidle(c)
		c.take(s)
		if len(s.Target)+len(s.Referer)+len(s.UserAgent) > bigHeadBytes {
			return func() { go c.send(s) } // would block the loop
		}
		return func() { c.send(s) }
	}
	if cl.conns < p.opts.PerClient && len(cl.queue) == 0 && p.room(cl) {
		return p.dial(cl, s)
	}
	if len(cl.idle) > 0 { // it needs a fresh connection: an idle one of its own makes room
		oldest := cl.idle[0]
		p.unidle(oldest)
		oldest.discard()
		return p.dial(cl, s)
	}
	return p.wait(cl, s)
}

// bigHeadBytes fits the socket's buffer for sure, so that writing less than that does not block.
const bigHeadBytes = 8 << 10

// room reports whether one more connection may be opened. Where the cap is reached, it closes the longest idle
// connection, whose place the client will have.
func (p *Pool) room(cl *client) bool {
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
func (p *Pool) dial(cl *client, s *exchange.Shot) func() {
	cl.conns++
	p.open++
	if s.StartNS == 0 {
		s.StartNS = p.Clock.Now()
	}
	return func() { go p.connect(cl, s) }
}

// released returns the next request to send on a connection that has done its own, or makes it idle. It returns false
// when the connection is to close, so that a client without one can have its place.
func (p *Pool) released(c *http1Conn) (next *exchange.Shot, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.unqueue(c.client); s != nil {
		c.take(s)
		return s, true
	}
	if len(p.starved) > 0 || p.stopped {
		c.cur.Store(nil)
		return nil, false
	}
	c.cur.Store(nil)
	c.idleSinceNS = p.Clock.Now()
	c.client.idle = append(c.client.idle, c)
	p.idle.add(c)
	return nil, true
}

// unidle takes a connection out of the idle ones.
func (p *Pool) unidle(c *http1Conn) {
	p.idle.remove(c)
	for i, other := range c.client.idle {
		if other == c {
			c.client.idle = append(c.client.idle[:i], c.client.idle[i+1:]...)
			return
		}
	}
}

// retire takes an idle connection that the server closed out of the pool, unless it was given a request meanwhile.
func (p *Pool) retire(c *http1Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.cur.Load() != nil {
		return false
	}
	p.unidle(c)
	return true
}

// gone gives up the place of a connection that has ended, or was never opened, to who waits for it.
func (p *Pool) gone(cl *client, conn net.Conn) {
	p.mu.Lock()
	delete(p.all, conn)
	cl.conns--
	p.open--
	send := p.refill(cl)
	p.mu.Unlock()
	send()
}
