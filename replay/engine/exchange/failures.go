// What drivers report when something goes wrong, what is sent again then, and how a run ends early.

package exchange

import (
	"slices"

	"plimsoll/replay/record"
)

// OpenFailed tells that a connection did not come about.
func (p *ConnectionPool) OpenFailed(c *Conn, connectUS, tlsUS uint32, err error, now int64) {
	if c.closed {
		return
	}
	p.Health.ConnectFailed(err)
	a := c.attempts[0]
	a.ConnectUS, a.TLSUS = connectUS, tlsUS
	p.detach(c, a)
	p.close(c)
	p.refill(c.client, now)
	p.finish(a, now, PartialAnswer{}, KindOf(err))
}

// Failed tells that one request of a connection has failed, while the connection goes on.
func (p *ConnectionPool) Failed(c *Conn, a *Attempt, kind record.ErrorKind, now int64) {
	if a.conn != c {
		return
	}
	received := p.transport.Received(c, a)
	p.detach(c, a)
	p.release(c, now)
	p.finish(a, now, received, kind)
}

// Refused tells that the server has not looked at a request and will not: it is sent again, once.
func (p *ConnectionPool) Refused(c *Conn, a *Attempt, now int64) {
	if a.conn != c {
		return
	}
	p.detach(c, a)
	p.release(c, now)
	if a.retried {
		p.finish(a, now, PartialAnswer{}, record.H2Refused)
		return
	}
	p.again(a, now)
}

// Leaving tells that a connection takes no more requests; those under way may still be answered.
func (p *ConnectionPool) Leaving(c *Conn, now int64) {
	if c.closed {
		return
	}
	c.room, c.leaving = 0, true
	c.client.conns = without(c.client.conns, c)
	if len(c.attempts) == 0 {
		p.close(c)
	}
	p.refill(c.client, now)
}

// Closed tells that a connection has ended, and how. What was under way on it is sent again, where a browser would.
func (p *ConnectionPool) Closed(c *Conn, err error, now int64) {
	if c.closed {
		return
	}
	attempts := slices.Clone(c.attempts)
	received := make([]PartialAnswer, len(attempts))
	for i, a := range attempts {
		received[i] = p.transport.Received(c, a)
		p.detach(c, a)
	}
	p.close(c)
	for i, a := range attempts {
		a.FirstNS = received[i].FirstNS
		if a.isStale() && p.Abort.Err() == nil {
			p.again(a, now)
		} else {
			p.finish(a, now, received[i], KindOf(err))
		}
	}
	p.refill(c.client, now)
}

// again sends a request once more, as browsers do when a kept-open connection turns out to be closed.
func (p *ConnectionPool) again(a *Attempt, now int64) {
	if p.stopped {
		p.unsent++
		p.done(a, record.None, now)
		return
	}
	a.retried = true
	a.FirstNS, a.ConnectUS, a.TLSUS = 0, 0, 0
	a.Flags &^= record.Reused | record.HTTP2
	p.Recorder.Retried()
	p.place(a, now)
}

// Stop lets what is under way finish and forgets what waits.
func (p *ConnectionPool) Stop() {
	p.stopped = true
	for a := p.waiting.first; a != nil; a = p.waiting.first {
		p.giveUpWaiting(a)
		p.unsent++
		p.done(a, record.None, a.DueNS)
	}
}

// GiveUp ends all that is under way.
func (p *ConnectionPool) GiveUp(now int64) {
	p.Stop()
	for a := p.inFlight.first; a != nil; a = p.inFlight.first {
		p.giveUp(a, record.Aborted, now)
	}
}
