// Package netconn drives a connection pool over Go's connections, with a goroutine for each: for TLS and HTTP/2, and for
// systems without event loops.
package netconn

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"strconv"
	"sync"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/punctual"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Driver drives one pool. All that happens to it happens under one lock; what it asks for is done after that, by
// whoever held the lock.
type Driver struct {
	*exchange.RunState
	resume  *sessions
	sleep   punctual.Sleeper
	mu      sync.Mutex
	pool    *exchange.ConnectionPool
	links   map[*link]struct{}
	todo    []action
	untilNS int64 // until when the schedule sleeps
}

// action is something that a pool asked for.
type action struct {
	kind    actionKind
	link    *link
	attempt *exchange.Attempt
}

type actionKind uint8

const (
	open actionKind = iota
	send
	cancel
)

// New returns a driver for the requests of a source.
func New(state *exchange.RunState, bounds exchange.Bounds, source exchange.AttemptSource) *Driver {
	d := &Driver{
		RunState: state, resume: newSessions(state.Target.Resume), sleep: punctual.NewSleeper(state.Clock.Now), links: map[*link]struct{}{},
	}
	d.pool = exchange.NewConnectionPool(state, bounds, source, d)
	return d
}

// Wake makes the driver look at its source again. Any goroutine may call it, also after the run.
func (d *Driver) Wake() { d.sleep.Wake() }

// Unsent returns how many requests were submitted and not sent, since the driver was stopped.
func (d *Driver) Unsent() uint64 { return d.pool.Unsent() }

// Run sends what the source has until that has ended and all answers are there. When stop ends nothing more is sent; when
// the Abort of the run does, nothing more is waited for.
func (d *Driver) Run(stop context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if !d.ClosedLoop {
		nice, restore := punctual.PrioritizeThread(d.Target.Local)
		defer restore()
		d.Nice.Store(int64(nice))
	}
	defer d.sleep.Close()
	defer context.AfterFunc(stop, d.Wake)()
	defer context.AfterFunc(d.Abort, d.Wake)()
	for {
		d.mu.Lock()
		if stop.Err() != nil {
			d.pool.Stop()
		}
		if d.Abort.Err() != nil {
			d.pool.GiveUp(d.Clock.Now())
		}
		again := d.turn()
		d.untilNS = again
		over := d.pool.IsOver()
		todo := d.takeActions()
		d.mu.Unlock()
		d.perform(todo)
		if over {
			break
		}
		d.sleep.Until(again)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.links {
		l.close()
	}
}

// update lets something happen to the pool, and does what it then asks for.
func (d *Driver) update(what func(pool *exchange.ConnectionPool, now int64)) {
	d.mu.Lock()
	what(d.pool, d.Clock.Now())
	again := d.turn()
	wake := again < d.untilNS || d.pool.IsOver()
	todo := d.takeActions()
	d.mu.Unlock()
	d.perform(todo)
	if wake {
		d.sleep.Wake()
	}
}

// turn lets the pool send what is due. It returns when there is something to do again.
func (d *Driver) turn() int64 {
	for {
		now := d.Clock.Now()
		if again := d.pool.Turn(now); again > now {
			return again
		}
	}
}

func (d *Driver) takeActions() []action {
	todo := d.todo
	d.todo = nil
	return todo
}

func (d *Driver) perform(todo []action) {
	for _, a := range todo {
		switch a.kind {
		case open:
			go a.link.run(a.attempt)
		case send:
			a.link.protocol.send(a.attempt)
		case cancel:
			a.link.protocol.cancel(a.attempt)
		}
	}
}

// Open has a connection opened.
func (d *Driver) Open(c *exchange.Conn, s *exchange.Attempt) {
	l := &link{driver: d, conn: c}
	l.ctx, l.cancel = context.WithCancel(d.Abort)
	d.links[l] = struct{}{}
	c.Link = l
	d.todo = append(d.todo, action{open, l, s})
}

// Send has a request written.
func (d *Driver) Send(c *exchange.Conn, s *exchange.Attempt) {
	d.todo = append(d.todo, action{send, c.Link.(*link), s})
}

// Cancel has a stream of HTTP/2 ended.
func (d *Driver) Cancel(c *exchange.Conn, s *exchange.Attempt) {
	d.todo = append(d.todo, action{cancel, c.Link.(*link), s})
}

// Close closes a connection, or ends the attempt to open it.
func (d *Driver) Close(c *exchange.Conn) {
	l := c.Link.(*link)
	delete(d.links, l)
	l.close()
}

// Received returns what has come of an answer.
func (d *Driver) Received(c *exchange.Conn, s *exchange.Attempt) exchange.PartialAnswer {
	return c.Link.(*link).protocol.received(s)
}

// link is a connection of the pool: first an attempt, then a net.Conn.
type link struct {
	driver   *Driver
	conn     *exchange.Conn
	protocol protocol // set before the pool knows that the connection is open
	cancel   context.CancelFunc
	ctx      context.Context

	mu     sync.Mutex
	net    net.Conn // nil until it is open
	closed bool
}

// protocol speaks HTTP/1.x or HTTP/2 on a connection.
type protocol interface {
	send(s *exchange.Attempt)
	cancel(s *exchange.Attempt)
	received(s *exchange.Attempt) exchange.PartialAnswer
	read() // tells the pool what comes, until the connection ends
	stop() // the connection was closed
}

// run opens the connection for a request and reads from it until it ends.
func (l *link) run(s *exchange.Attempt) {
	defer l.cancel()
	d, key := l.driver, l.conn.Client()
	name := target.ServerName(s.Authority(d.Target.Host, d.Headers))
	conn, connectNS, tlsNS, err := d.Target.Dial(l.ctx, target.Dialing{
		ServerName: name, HTTP2: key.HTTP2, Timeout: d.Timeout, Sessions: d.resume.of(key), Client: key.Client,
	})
	connectUS, tlsUS := record.SaturatedUS(connectNS), record.SaturatedUS(tlsNS)
	if err != nil {
		d.update(func(pool *exchange.ConnectionPool, now int64) { pool.OpenFailed(l.conn, connectUS, tlsUS, err, now) })
		return
	}
	if !l.adopt(conn) {
		return
	}
	secure, _ := conn.(*tls.Conn)
	http2 := secure != nil && secure.ConnectionState().NegotiatedProtocol == "h2"
	if http2 {
		l.protocol = newHTTP2(l, conn)
	} else {
		l.protocol = &http1{link: l, net: conn, parser: wire.ResponseParser{Software: d.Software}}
	}
	defer l.protocol.stop()
	d.update(func(pool *exchange.ConnectionPool, now int64) { pool.Opened(l.conn, http2, connectUS, tlsUS, now) })
	l.protocol.read()
}

// adopt takes the open connection, unless it is no longer wanted.
func (l *link) adopt(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return false
	}
	l.net = conn
	return true
}

// close closes the connection without waiting for anybody. One that may be idle is reset: an orderly end would keep its
// port busy for a minute (TIME_WAIT), and ten thousand users who come and go, or the next run, would run out of ports.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.cancel()
	if tcp := l.tcp(); tcp != nil {
		if l.conn.IsIdle() {
			_ = tcp.SetLinger(0)
		}
		_ = tcp.Close()
	}
}

// tcp returns what carries the connection, once it is open.
func (l *link) tcp() *net.TCPConn {
	conn := l.net
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	tcp, _ := conn.(*net.TCPConn)
	return tcp
}

// reportClosed tells the pool that the connection has ended.
func (l *link) reportClosed(err error) {
	l.driver.update(func(pool *exchange.ConnectionPool, now int64) { pool.Closed(l.conn, err, now) })
}

// mostSessions bounds the memory; past it the session that was used longest ago is forgotten.
const mostSessions = 1 << 16

// sessions keeps the TLS sessions of all clients, so that each resumes its own as browsers do.
type sessions struct {
	all tls.ClientSessionCache // nil: nobody resumes
}

func newSessions(resume bool) *sessions {
	if !resume {
		return &sessions{}
	}
	return &sessions{tls.NewLRUClientSessionCache(mostSessions)}
}

// of returns the sessions of one client.
func (s *sessions) of(key exchange.Key) tls.ClientSessionCache {
	if s.all == nil {
		return nil
	}
	return clientSessions{s.all, strconv.FormatUint(uint64(key.Client), 36) + " "}
}

// clientSessions is one client's part of a cache.
type clientSessions struct {
	all    tls.ClientSessionCache
	prefix string
}

// Get returns a session for a host.
func (c clientSessions) Get(host string) (*tls.ClientSessionState, bool) {
	return c.all.Get(c.prefix + host)
}

// Put keeps a session for a host.
func (c clientSessions) Put(host string, state *tls.ClientSessionState) {
	c.all.Put(c.prefix+host, state)
}
