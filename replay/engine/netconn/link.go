package netconn

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/record"
)

// link is a connection of the life: first an attempt, then a net.Conn.
type link struct {
	driver *Driver
	conn   *exchange.Conn
	side   side // set before the life knows that the connection is open
	cancel context.CancelFunc
	ctx    context.Context

	mu     sync.Mutex
	net    net.Conn // nil until it is open
	closed bool
}

// side speaks HTTP/1.x or HTTP/2 on a connection.
type side interface {
	send(s *exchange.Shot)
	cancel(s *exchange.Shot)
	came(s *exchange.Shot) exchange.Partial
	read() // tells the life what comes, until the connection ends
	over() // the connection was closed
}

func newLink(d *Driver, c *exchange.Conn) *link {
	l := &link{driver: d, conn: c}
	l.ctx, l.cancel = context.WithCancel(d.Abort)
	return l
}

// run opens the connection for a request and reads from it until it ends.
func (l *link) run(s *exchange.Shot) {
	defer l.cancel()
	d, key := l.driver, l.conn.Client()
	name := target.ServerName(s.Authority(d.Target.Host, d.Headers))
	conn, connectNS, tlsNS, err := d.Target.Dial(l.ctx, target.Dialing{
		ServerName: name, HTTP2: key.HTTP2, Timeout: d.Timeout, Sessions: d.resume.of(key), Client: key.Client,
	})
	connectUS, tlsUS := record.SaturatedUS(connectNS), record.SaturatedUS(tlsNS)
	if err != nil {
		d.tell(func(life *exchange.Life, now int64) { life.OpenFailed(l.conn, connectUS, tlsUS, err, now) })
		return
	}
	if !l.opened(conn) {
		return
	}
	secure, _ := conn.(*tls.Conn)
	http2 := secure != nil && secure.ConnectionState().NegotiatedProtocol == "h2"
	if http2 {
		l.side = newHTTP2(l, conn)
	} else {
		l.side = newHTTP1(l, conn)
	}
	defer l.side.over()
	d.tell(func(life *exchange.Life, now int64) { life.Opened(l.conn, http2, connectUS, tlsUS, now) })
	l.side.read()
}

// opened takes the open connection, unless it is no longer wanted.
func (l *link) opened(conn net.Conn) bool {
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

// broken tells the life that the connection has ended.
func (l *link) broken(err error) {
	l.driver.tell(func(life *exchange.Life, now int64) { life.Closed(l.conn, err, now) })
}
