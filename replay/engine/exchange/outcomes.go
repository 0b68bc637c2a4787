package exchange

import (
	"slices"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// What a transport tells a life, and what the life makes of it.

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

// OpenFailed tells that a connection did not come about.
func (l *Life) OpenFailed(c *Conn, connectUS, tlsUS uint32, err error, now int64) {
	if c.closed {
		return
	}
	l.Health.ConnectFailed(err)
	s := c.shots[0]
	s.ConnectUS, s.TLSUS = connectUS, tlsUS
	l.land(c, s)
	l.close(c)
	l.refill(c.client, now)
	l.finish(s, now, Partial{}, KindOf(err))
}

// Allow sets how many requests the server of an HTTP/2 connection wants under way.
func (l *Life) Allow(c *Conn, room int, now int64) {
	if !c.closed && !c.leaving {
		c.room = max(room, 0)
		l.fill(c, now)
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

// Failed tells that one request of a connection has failed, while the connection goes on.
func (l *Life) Failed(c *Conn, s *Shot, kind record.ErrorKind, now int64) {
	if s.conn != c {
		return
	}
	came := l.transport.Came(c, s)
	l.land(c, s)
	l.release(c, now)
	l.finish(s, now, came, kind)
}

// Refused tells that the server has not looked at a request and will not: it is sent again, once.
func (l *Life) Refused(c *Conn, s *Shot, now int64) {
	if s.conn != c {
		return
	}
	l.land(c, s)
	l.release(c, now)
	if s.retried {
		l.finish(s, now, Partial{}, record.H2Refused)
		return
	}
	l.again(s, now)
}

// Leaving tells that a connection takes no more requests; those under way may still be answered.
func (l *Life) Leaving(c *Conn, now int64) {
	if c.closed {
		return
	}
	c.room, c.leaving = 0, true
	c.client.conns = without(c.client.conns, c)
	if len(c.shots) == 0 {
		l.close(c)
	}
	l.refill(c.client, now)
}

// land takes a request off its connection.
func (l *Life) land(c *Conn, s *Shot) {
	if i := slices.Index(c.shots, s); i >= 0 {
		c.shots = slices.Delete(c.shots, i, i+1)
	}
	s.conn = nil
	l.flying.remove(s)
}

// Closed tells that a connection has ended, and how. What was under way on it is sent again, where a browser would.
func (l *Life) Closed(c *Conn, err error, now int64) {
	if c.closed {
		return
	}
	shots := slices.Clone(c.shots)
	came := make([]Partial, len(shots))
	for i, s := range shots {
		came[i] = l.transport.Came(c, s)
		l.land(c, s)
	}
	l.close(c)
	for i, s := range shots {
		s.FirstNS = came[i].FirstNS
		if s.isStale() && l.Abort.Err() == nil {
			l.again(s, now)
		} else {
			l.finish(s, now, came[i], KindOf(err))
		}
	}
	l.refill(c.client, now)
}

// again sends a request once more, as browsers do when a kept-open connection turns out to be closed.
func (l *Life) again(s *Shot, now int64) {
	if l.stopped {
		l.unsent++
		l.done(s, record.None, now)
		return
	}
	s.retried = true
	s.FirstNS, s.ConnectUS, s.TLSUS = 0, 0, 0
	s.Flags &^= record.Reused | record.HTTP2
	l.Recorder.Retried()
	l.place(s, now)
}

// finish records how a request ended and tells the plan.
func (l *Life) finish(s *Shot, now int64, came Partial, kind record.ErrorKind) {
	s.FirstNS = came.FirstNS
	l.record(s, now, came.Status, came.Bytes, kind)
	l.done(s, kind, now)
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
