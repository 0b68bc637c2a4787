package pool

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// http1Conn is one HTTP/1.x connection. The goroutine that submits a request also writes it; a goroutine of the
// connection's own reads the responses. So sending needs no switch to another goroutine.
type http1Conn struct {
	pool   *Pool
	client *client
	net    net.Conn
	rd     *wire.ResponseReader
	cur    atomic.Pointer[exchange.Shot] // nil while idle; set under the pool's lock

	writing sync.Mutex
	out     []byte
	broken  atomic.Bool // a write failed

	// Of the pool, under its lock.
	served       int
	idleSinceNS  int64
	older, newer *http1Conn
}

// take makes a request the connection's current one. The pool's lock is held, or the connection is not in the pool yet.
func (c *http1Conn) take(s *exchange.Shot) {
	if s.StartNS == 0 {
		s.StartNS = c.pool.Clock.Now()
	}
	if c.served > 0 {
		s.Flags |= record.Reused
	} else {
		s.Flags &^= record.Reused
	}
	if c.pool.Target.TLS {
		s.Flags |= record.TLS
	}
	c.served++
	c.cur.Store(s)
}

// send writes the current request. When that fails it closes the connection, and the reading side deals with the rest.
func (c *http1Conn) send(s *exchange.Shot) {
	c.writing.Lock()
	defer c.writing.Unlock()
	p := c.pool
	c.out = s.AppendHTTP1(c.out[:0], p.Target.Host, p.Headers)
	deadline := p.Clock.At(p.DeadlineNS(s))
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
func (c *http1Conn) discard() { reset(c.net) }

// reset closes a connection on which nothing is under way. An orderly end would keep its port busy for a minute
// (TIME_WAIT), and ten thousand users who come and go, or the next run, would run out of ports.
func reset(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// next waits for a response, records it and goes on to the next request. It returns false when the connection ended.
func (c *http1Conn) next() bool {
	err := c.rd.Wait()
	p := c.pool
	now := p.Clock.Now()
	s := c.cur.Load()
	if s == nil {
		if target.IsTimeout(err) { // the deadline of the last request
			_ = c.net.SetReadDeadline(p.Clock.At(now).Add(p.opts.IdleTimeout * 2))
			return true
		}
		if p.retire(c) {
			return false
		}
		s = c.cur.Load()
	}
	if target.IsTimeout(err) && now < p.DeadlineNS(s) {
		return true // likewise: the new deadline is being set
	}
	if err != nil {
		c.failed(s, wire.Response{}, wire.Early(err), false)
		return false
	}
	s.FirstNS = now
	resp, err := c.rd.Response(s.Method == "HEAD")
	now = p.Clock.Now()
	p.Answered(s, resp.Status, &resp.Version)
	if err != nil {
		c.failed(s, resp, err, true)
		return false
	}
	if !resp.KeepAlive || s.Proto == wire.HTTP10 {
		c.cur.Store(nil)
		p.done(s, now, resp.Status, resp.Bytes, record.None)
		return false
	}
	// A closed loop goes on with the next request when this one is recorded: by then the connection has to be free for
	// it.
	next, keep := p.released(c)
	p.done(s, now, resp.Status, resp.Bytes, record.None)
	if next != nil {
		c.send(next)
	}
	return keep
}

// failed ends the current request with an error, or sends it again where a browser would: when the server closed a
// connection that it had kept open just as the request was sent.
func (c *http1Conn) failed(s *exchange.Shot, resp wire.Response, err error, answered bool) {
	p := c.pool
	kind := exchange.KindOf(err)
	if !answered && kind != record.Timeout && s.IsStale(c.served) && p.Abort.Err() == nil {
		p.again(c.client, s)
		return
	}
	if c.broken.Load() && !answered && kind == record.Other {
		kind = record.WriteFailed
	}
	p.done(s, p.Clock.Now(), resp.Status, resp.Bytes, kind)
}
