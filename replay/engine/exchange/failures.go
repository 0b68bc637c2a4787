// What drivers report when something goes wrong, what is sent again then, and how a run ends early.

package exchange

import (
	"slices"

	"plimsoll/replay/record"
)

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

// Stop lets what is under way finish and forgets what waits.
func (l *Life) Stop() {
	l.stopped = true
	for s := l.waiting.first; s != nil; s = l.waiting.first {
		l.giveUpWaiting(s)
		l.unsent++
		l.done(s, record.None, s.DueNS)
	}
}

// GiveUp ends all that is under way.
func (l *Life) GiveUp(now int64) {
	l.Stop()
	for s := l.flying.first; s != nil; s = l.flying.first {
		l.giveUp(s, record.Aborted, now)
	}
}
