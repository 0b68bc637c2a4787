package exchange

import (
	"slices"

	"plimsoll/replay/record"
)

// wait lets a request wait for a connection of its client.
func (l *Life) wait(cl *client, s *Shot, now int64) {
	if l.queued.Add(1) > int64(l.bounds.MaxQueued) {
		l.queued.Add(-1)
		l.settle(cl)
		l.skip(s, SkipCap, now)
		return
	}
	s.Flags |= record.Queued
	if s.StartNS == 0 && len(cl.conns) >= l.perClient(cl) && !(l.overHTTP2(cl.key) && cl.conns[0].isOpening()) {
		s.Flags |= record.ClientQueued
	}
	if s.retried {
		cl.queue = slices.Insert(cl.queue, 0, s)
	} else {
		cl.queue = append(cl.queue, s)
	}
	l.waiting.add(s)
	l.settle(cl)
}

// giveUpWaiting takes a request out of the queue in which it waits, for good.
func (l *Life) giveUpWaiting(s *Shot) {
	cl := l.clients[s.Key]
	l.unqueue(cl, s)
	l.settle(cl)
}

// unqueue takes a request out of its client's queue.
func (l *Life) unqueue(cl *client, s *Shot) {
	if cl.queue[0] == s {
		cl.queue[0] = nil
		cl.queue = cl.queue[1:]
	} else {
		cl.queue = without(cl.queue, s)
	}
	if len(cl.queue) == 0 {
		cl.queue = nil
	}
	l.waiting.remove(s)
	l.queued.Add(-1)
}

// release reuses a connection on which a request has ended: with the next that waits for it, else it becomes idle,
// or makes room for a fresh one or for another client's.
func (l *Life) release(c *Conn, now int64) {
	l.fill(c, now)
	switch {
	case len(c.shots) > 0 || c.closed:
	case c.leaving || l.stopped || len(l.starved) > 0 || c.room > 0 && len(c.client.queue) > 0:
		l.close(c)
		l.refill(c.client, now)
	default:
		c.idle, c.idleSinceNS = true, now
		c.client.idle = append(c.client.idle, c)
		l.idle.add(c)
	}
}

// fill sends what waits for a connection, as far as it has room and will do for it.
func (l *Life) fill(c *Conn, now int64) {
	for len(c.shots) < c.room && len(c.client.queue) > 0 {
		s := c.client.queue[0]
		if c.served > 0 && l.wantsFresh(s) {
			return
		}
		l.unqueue(c.client, s)
		l.settle(c.client)
		l.send(c, s, now)
	}
}

// refill opens a connection for a request that waits for one: of this client, else of the first starved one. It returns
// whether it did.
func (l *Life) refill(cl *client, now int64) bool {
	if l.dialWaiting(cl, now) {
		return true
	}
	l.settle(cl)
	if len(l.starved) == 0 {
		return false
	}
	next := l.starved[0]
	dialed := l.dialWaiting(next, now)
	if dialed && next.starved { // the others first
		l.starved = append(l.starved[1:], next)
	}
	return dialed
}

func (l *Life) dialWaiting(cl *client, now int64) bool {
	if len(cl.queue) == 0 || len(cl.conns) >= l.perClient(cl) || !l.hasRoom(cl) {
		return false
	}
	s := cl.queue[0]
	l.unqueue(cl, s)
	l.dial(cl, s, now)
	return true
}

// unidle takes a connection out of the idle ones, where it is one.
func (l *Life) unidle(c *Conn) {
	if n := len(c.client.idle); n > 0 && c.client.idle[n-1] == c {
		c.client.idle = c.client.idle[:n-1]
	} else {
		c.client.idle = without(c.client.idle, c)
	}
	l.idle.remove(c)
	c.idle = false
}

// close closes a connection on which nothing is under way any more. Its place is for refill to give away.
func (l *Life) close(c *Conn) {
	l.transport.Close(c)
	if c.idle {
		l.unidle(c)
	}
	c.closed = true
	c.client.conns = without(c.client.conns, c)
	l.countOpen(-1)
}

// settle puts a client that waits for the cap among the starved, takes out one that does no longer, and forgets one that
// has neither connections nor requests.
func (l *Life) settle(cl *client) {
	starved := len(cl.queue) > 0 && len(cl.conns) < l.perClient(cl)
	switch {
	case starved && !cl.starved:
		l.starved = append(l.starved, cl)
	case cl.starved && !starved && l.starved[0] == cl:
		l.starved[0] = nil
		l.starved = l.starved[1:]
	case cl.starved && !starved:
		l.starved = without(l.starved, cl)
	}
	cl.starved = starved
	if len(cl.conns) == 0 && len(cl.queue) == 0 && l.clients[cl.key] == cl {
		delete(l.clients, cl.key)
	}
}

// without returns a list without one of its elements.
func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
