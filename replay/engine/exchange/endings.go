package exchange

import (
	"net"
	"os"

	"plimsoll/replay/record"
)

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

// expire gives up what has taken too long and closes connections that were idle for too long. What waits is first, so
// that it is not sent after its time on the connection of a request that timed out with it. It returns when there is
// something to do again.
func (l *Life) expire(now int64) (againNS int64) {
	for s := l.waiting.first; s != nil && l.deadlineNS(s) <= now; s = l.waiting.first {
		l.giveUpWaiting(s)
		if s.StartNS == 0 {
			s.StartNS = now
		}
		l.finish(s, now, Partial{}, record.Timeout)
	}
	for s := l.flying.first; s != nil && l.deadlineNS(s) <= now; s = l.flying.first {
		l.giveUp(s, record.Timeout, now)
	}
	for c := l.idle.first; c != nil && l.idleUntilNS(c) <= now; c = l.idle.first {
		l.close(c)
		l.refill(c.client, now)
	}
	again := Never
	if l.waiting.first != nil {
		again = l.deadlineNS(l.waiting.first)
	}
	if l.flying.first != nil {
		again = min(again, l.deadlineNS(l.flying.first))
	}
	if l.idle.first != nil {
		again = min(again, l.idleUntilNS(l.idle.first))
	}
	return again
}

func (l *Life) idleUntilNS(c *Conn) int64 { return c.idleSinceNS + l.bounds.IdleTimeout.Nanoseconds() }

// errNotConnected is how opening a connection ends that takes too long.
var errNotConnected = &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}

// giveUp ends a request that is under way: with its connection over HTTP/1.x, with its stream over HTTP/2.
func (l *Life) giveUp(s *Shot, kind record.ErrorKind, now int64) {
	c := s.conn
	came := Partial{}
	if c.isOpening() {
		s.ConnectUS = record.SaturatedUS(now - s.StartNS)
		if kind == record.Timeout {
			l.Health.ConnectFailed(errNotConnected)
		}
	} else {
		came = l.transport.Came(c, s)
	}
	l.land(c, s)
	if c.http2 {
		l.transport.Cancel(c, s)
		l.release(c, now)
	} else {
		l.close(c)
		l.refill(c.client, now)
	}
	l.finish(s, now, came, kind)
}
