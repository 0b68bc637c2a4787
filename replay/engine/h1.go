package engine

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"plimsoll/replay/record"
)

// h1 is one HTTP/1.x connection. Whoever gives it a request writes that request; a goroutine of its own reads the
// responses, so that sending costs no switch to another goroutine.
type h1 struct {
	pool *pool
	cl   *client
	net  net.Conn
	rd   *reader
	cur  atomic.Pointer[Shot] // nil while idle; set under the pool's lock

	writing sync.Mutex
	out     []byte
	broken  atomic.Bool // a write failed

	// Of the pool, under its lock.
	served       int
	idleSinceNS  int64
	older, newer *h1
}

// take makes a request the connection's current one. The pool's lock is held, or nobody else knows the connection.
func (c *h1) take(s *Shot) {
	if s.startNS == 0 {
		s.startNS = c.pool.clock.now()
	}
	if c.served > 0 {
		s.flags |= record.Reused
	} else {
		s.flags &^= record.Reused
	}
	if c.pool.target.TLS {
		s.flags |= record.TLS
	}
	c.served++
	c.cur.Store(s)
}

// send writes the current request. When that fails it closes the connection, and the reading side deals with the rest.
func (c *h1) send(s *Shot) {
	c.writing.Lock()
	defer c.writing.Unlock()
	p := c.pool
	c.out = s.appendHTTP1(c.out[:0], p.target, p.headers)
	deadline := p.clock.at(s.startNS + p.opts.Timeout.Nanoseconds())
	_ = c.net.SetReadDeadline(deadline)
	if len(c.out) > bigHeadBytes {
		_ = c.net.SetWriteDeadline(deadline)
	}
	if _, err := c.net.Write(c.out); err != nil {
		c.broken.Store(true)
		_ = c.net.Close()
	}
	if cap(c.out) > bigHeadBytes {
		c.out = nil
	}
}

// discard closes an idle connection.
func (c *h1) discard() { reset(c.net) }

// reset closes a connection on which nothing is under way. An orderly end would keep its port busy for a minute (TIME_WAIT), and
// ten thousand users who come and go, or the next run, would run out of ports.
func reset(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// exchange waits for a response, records it and goes on to the next request. It returns false when the connection ended.
func (c *h1) exchange() bool {
	err := c.rd.wait()
	p := c.pool
	now := p.clock.now()
	s := c.cur.Load()
	if s == nil {
		if isTimeout(err) { // the deadline of the last request
			_ = c.net.SetReadDeadline(p.clock.at(now).Add(p.opts.IdleTimeout * 2))
			return true
		}
		if p.retire(c) {
			return false
		}
		s = c.cur.Load()
	}
	if isTimeout(err) && now < s.startNS+p.opts.Timeout.Nanoseconds() {
		return true // likewise: the new deadline is being set
	}
	if err != nil {
		c.failed(s, response{}, early(err), false)
		return false
	}
	s.firstNS = now
	resp, err := c.rd.response(s.Method == "HEAD")
	now = p.clock.now()
	if resp.status == 200 {
		p.versions.learn(s, resp.version)
	}
	if err != nil {
		c.failed(s, resp, err, true)
		return false
	}
	if !resp.keepAlive || s.Proto == HTTP10 {
		c.cur.Store(nil)
		p.done(s, now, resp.status, resp.bytes, record.None)
		return false
	}
	// A closed loop goes on with the next request when this one is recorded: by then the connection has to be free for it.
	next, keep := p.released(c)
	p.done(s, now, resp.status, resp.bytes, record.None)
	if next != nil {
		c.send(next)
	}
	return keep
}

// failed ends the current request with an error, or sends it again where a browser would: when the server closed a connection
// that it had kept open just as the request was sent.
func (c *h1) failed(s *Shot, resp response, err error, answered bool) {
	p := c.pool
	kind := kindOf(err)
	stale := !answered && kind != record.Timeout && c.served > 1
	if stale && !s.retried && (s.Method == "GET" || s.Method == "HEAD") && p.abortCtx.Err() == nil {
		p.again(c.cl, s)
		return
	}
	if c.broken.Load() && !answered && kind == record.Other {
		kind = record.WriteFailed
	}
	p.done(s, p.clock.now(), resp.status, resp.bytes, kind)
}
