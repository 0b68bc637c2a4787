package eventloop

import (
	"net"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// socket is a connection of the life, and the request under way on it.
type socket struct {
	conn       *exchange.Conn
	shot       *exchange.Shot // nil while idle
	fd         int            // −1: closed
	slot       int32
	generation int32
	connecting bool
	unwritten  []byte
	parser     wire.ResponseParser
}

// Open begins to connect.
func (l *Loop) Open(c *exchange.Conn, shot *exchange.Shot) {
	s := &socket{conn: c, shot: shot, fd: -1, slot: -1, connecting: true}
	c.Link = s
	fd, err := l.dialer.dial(c.Client().Client)
	if err != nil {
		l.failed = append(l.failed, failure{c, dialError(err)})
		return
	}
	s.fd = fd
	l.settle(s)
	if err = l.poll.add(fd, s.slot, s.generation); err != nil {
		l.failed = append(l.failed, failure{c, dialError(err)})
	}
}

func dialError(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

// settle gives a socket a slot.
func (l *Loop) settle(s *socket) {
	if n := len(l.vacant); n > 0 {
		s.slot = l.vacant[n-1]
		l.vacant = l.vacant[:n-1]
	} else {
		s.slot = int32(len(l.sockets))
		l.sockets = append(l.sockets, nil)
	}
	l.generation++
	s.generation = l.generation
	l.sockets[s.slot] = s
}

// ready deals with an event of a socket. What it says is not said again: what came with the connection is read too.
func (l *Loop) ready(s *socket, events uint32) {
	if s.connecting {
		l.connected(s)
	} else if len(s.unwritten) > 0 && events&unix.EPOLLOUT != 0 {
		l.write(s, s.unwritten)
	}
	if s.fd >= 0 && events&^unix.EPOLLOUT != 0 {
		l.read(s, events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	}
}

func (l *Loop) connected(s *socket) {
	code, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	now := l.clock.Now()
	connectUS := record.SaturatedUS(now - s.shot.StartNS)
	if err != nil {
		l.life.OpenFailed(s.conn, connectUS, 0, dialError(err), now)
		return
	}
	s.connecting = false
	l.life.Opened(s.conn, false, connectUS, 0, now)
}

// Send writes a request.
func (l *Loop) Send(c *exchange.Conn, shot *exchange.Shot) {
	s := c.Link.(*socket)
	s.shot = shot
	s.parser.Begin(shot.Method == "HEAD")
	if shot.IsMember() {
		s.parser.AskTold(shot.ReadsPages())
	}
	head := shot.Head
	if head == nil {
		l.out = shot.AppendHTTP1(l.out[:0], l.session.Target.Host, l.session.Headers)
		head = l.out
	}
	l.write(s, head)
}

// write sends what the socket takes. The rest follows when it takes more.
func (l *Loop) write(s *socket, b []byte) {
	n, err := writeNow(s.fd, b)
	if err == unix.EAGAIN {
		n, err = 0, nil
	}
	if err != nil {
		// The server may have answered and closed without reading: what it said counts.
		s.unwritten = nil
		l.hungry = append(l.hungry, s)
		return
	}
	if n == len(b) {
		s.unwritten = nil
		return
	}
	s.unwritten = append([]byte(nil), b[n:]...)
}

// read takes what has come. Where the end may have come with it, it reads until there is nothing left; a read that
// fills less than its room is otherwise the last.
func (l *Loop) read(s *socket, toTheEnd bool) {
	for range readsAtOnce {
		n, err := readNow(s.fd, l.in)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil:
			l.life.Closed(s.conn, err, l.clock.Now())
			return
		case n == 0:
			l.ended(s)
			return
		}
		if l.took(s, l.in[:n]); s.fd < 0 || n < len(l.in) && !toTheEnd {
			return
		}
	}
	l.hungry = append(l.hungry, s)
}

// took deals with bytes that have come. Those that nobody asked for end the connection.
func (l *Loop) took(s *socket, b []byte) {
	shot, now := s.shot, l.clock.Now()
	if shot == nil {
		l.life.Closed(s.conn, wire.ErrBadResponse, now)
		return
	}
	if shot.FirstNS == 0 {
		shot.FirstNS = now
	}
	used, whole, err := s.parser.Feed(b)
	switch {
	case err != nil:
		l.life.Closed(s.conn, err, now)
	case whole:
		if used < len(b) || len(s.unwritten) > 0 {
			s.parser.KeepAlive = false
		}
		s.shot = nil
		l.life.Answered(s.conn, shot, &s.parser.Response, now)
	}
}

// ended deals with a connection that the server has closed.
func (l *Loop) ended(s *socket) {
	shot, now := s.shot, l.clock.Now()
	if shot == nil || shot.FirstNS == 0 || s.parser.End() != nil {
		l.life.Closed(s.conn, wire.ErrClosedEarly, now)
		return
	}
	s.shot = nil
	l.life.Answered(s.conn, shot, &s.parser.Response, now)
}

// Cancel is for connections with many requests at once, of which this loop has none.
func (l *Loop) Cancel(*exchange.Conn, *exchange.Shot) {}

// Came returns what has come of an answer.
func (l *Loop) Came(c *exchange.Conn, shot *exchange.Shot) exchange.Partial {
	s := c.Link.(*socket)
	if s.shot != shot || s.connecting {
		return exchange.Partial{}
	}
	return exchange.Partial{Status: s.parser.Status, Bytes: s.parser.Bytes, FirstNS: shot.FirstNS}
}

// Close closes a connection. One on which nothing is under way is reset: an orderly end would keep its port busy for a
// minute (TIME_WAIT), and ten thousand users who come and go, or the next run, would run out of ports.
func (l *Loop) Close(c *exchange.Conn) {
	if s, ok := c.Link.(*socket); ok {
		l.hangUp(s)
	}
}

func (l *Loop) hangUp(s *socket) {
	if s.fd < 0 {
		return
	}
	if !s.connecting && s.shot == nil {
		_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	_ = unix.Close(s.fd)
	s.fd = -1
	l.sockets[s.slot] = nil
	l.vacant = append(l.vacant, s.slot)
}
