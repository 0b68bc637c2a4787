package exchange

import "slices"

// check holds a pool to what is always true of it between two inputs.
func (s *scene) check() {
	s.t.Helper()
	inFlight, waiting := s.lists()
	s.checkConns(inFlight)
	s.checkClients(waiting)
	l := s.pool
	if l.pending != len(inFlight)+len(waiting) {
		s.t.Errorf("%d requests pending, but %d under way and %d waiting", l.pending, len(inFlight), len(waiting))
	}
	if l.queued.Load() != int64(len(waiting)) || len(waiting) > l.bounds.MaxQueued {
		s.t.Errorf("%d requests wait and %d are counted, of %d at most", len(waiting), l.queued.Load(), l.bounds.MaxQueued)
	}
}

// lists returns the requests under way and those that wait, and checks their order and links.
func (s *scene) lists() (inFlight, waiting []*Attempt) {
	s.t.Helper()
	for _, l := range []*list[Attempt, *Attempt]{&s.pool.inFlight, &s.pool.waiting} {
		var all []*Attempt
		for one, before := l.first, (*Attempt)(nil); one != nil; one, before = one.newer, one {
			if one.older != before {
				s.t.Fatalf("%s is wrongly linked", s.names[one])
			}
			if before != nil && before.sinceNS() > one.sinceNS() {
				s.t.Errorf("%s times out after %s and stands before it", s.names[before], s.names[one])
			}
			all = append(all, one)
		}
		if n := len(all); n > 0 && l.last != all[n-1] || n == 0 && l.last != nil {
			s.t.Error("a list has a wrong end")
		}
		inFlight, waiting = waiting, all
	}
	return inFlight, waiting
}

// checkConns checks the connections, and that what is under way on them is what is under way.
func (s *scene) checkConns(inFlight []*Attempt) {
	s.t.Helper()
	open, under := 0, 0
	var idle []*Conn
	for c, before := s.pool.idle.first, (*Conn)(nil); c != nil; c, before = c.newer, c {
		if c.older != before || before != nil && before.idleSinceNS > c.idleSinceNS {
			s.t.Fatalf("the idle connection %d is in the wrong place", c.Link.(*pipe).number)
		}
		idle = append(idle, c)
	}
	if n := len(idle); n > 0 && s.pool.idle.last != idle[n-1] || n == 0 && s.pool.idle.last != nil {
		s.t.Error("the list of idle connections has a wrong end")
	}
	for i, c := range s.conns {
		if c.closed != c.Link.(*pipe).closed {
			s.t.Errorf("connection %d is closed for one side only", i+1)
		}
		isIdle := slices.Contains(idle, c)
		if c.closed {
			if isIdle || len(c.attempts) > 0 || slices.Contains(c.client.conns, c) {
				s.t.Errorf("connection %d is closed and still in use", i+1)
			}
			continue
		}
		open++
		under += len(c.attempts)
		if c.idle != isIdle || isIdle != (len(c.attempts) == 0) || isIdle != slices.Contains(c.client.idle, c) {
			s.t.Errorf("connection %d: idle %v, among the idle %v, %d under way", i+1, c.idle, isIdle, len(c.attempts))
		}
		if c.leaving == slices.Contains(c.client.conns, c) || !c.leaving && s.pool.clients[c.client.key] != c.client {
			s.t.Errorf("connection %d: leaving %v, its client says otherwise", i+1, c.leaving)
		}
		if !c.http2 && len(c.attempts) > 1 {
			s.t.Errorf("connection %d has %d requests under way", i+1, len(c.attempts))
		}
		for _, one := range c.attempts {
			if one.conn != c || !slices.Contains(inFlight, one) {
				s.t.Errorf("%s is under way on connection %d and does not know", s.names[one], i+1)
			}
		}
	}
	if open != s.pool.open || open > s.pool.bounds.MaxConnections || under != len(inFlight) {
		s.t.Errorf("%d connections open, %d counted, %d allowed; %d requests on them, %d under way",
			open, s.pool.open, s.pool.bounds.MaxConnections, under, len(inFlight))
	}
}

// checkClients checks that each client is there for a reason, and that whoever waits has to.
func (s *scene) checkClients(waiting []*Attempt) {
	s.t.Helper()
	l, queued := s.pool, 0
	for key, cl := range l.clients {
		queued += len(cl.queue)
		if len(cl.conns) == 0 && len(cl.queue) == 0 {
			s.t.Errorf("client %v is there for nothing", key)
		}
		waits := len(cl.queue) > 0 && len(cl.conns) < l.perClient(cl)
		if cl.waitsForSlot != waits || waits != slices.Contains(l.waitingForSlot, cl) {
			s.t.Errorf("client %v waits for the cap: %v, and is among those who do: %v", key, waits, cl.waitsForSlot)
		}
		if waits && (l.open < l.bounds.MaxConnections || l.idle.first != nil) {
			s.t.Errorf("client %v waits for the cap, and could have another connection", key)
		}
		if len(cl.conns) > max(1, l.bounds.PerClient) {
			s.t.Errorf("client %v has %d connections", key, len(cl.conns))
		}
		if len(cl.queue) == 0 {
			continue
		}
		if !slices.Contains(waiting, cl.queue[0]) {
			s.t.Errorf("%s waits and is not among those who wait", s.names[cl.queue[0]])
		}
		if cl.free() != nil && !l.wantsFresh(cl.queue[0]) {
			s.t.Errorf("client %v waits and has a connection that is free", key)
		}
	}
	if queued != len(waiting) {
		s.t.Errorf("%d requests are queued and %d wait", queued, len(waiting))
	}
}

// checkEmpty checks that a pool that is over, and whose idle connections have ended, has kept nothing.
func (s *scene) checkEmpty() {
	s.t.Helper()
	l := s.pool
	if !l.IsOver() {
		s.t.Errorf("it is not over: %d requests pending", l.pending)
	}
	if len(l.clients) > 0 || len(l.waitingForSlot) > 0 || l.open > 0 || l.idle.first != nil || l.inFlight.first != nil || l.waiting.first != nil {
		s.t.Errorf("kept: %d clients, %d of them without a connection, %d connections", len(l.clients), len(l.waitingForSlot), l.open)
	}
	unsent := uint64(0)
	for one, f := range s.fates {
		unsent += uint64(f.submitted - f.recorded - f.skipped)
		if f.done != f.submitted {
			s.t.Errorf("%s: %+v", s.names[one], *f)
		}
	}
	if unsent != l.Unsent() {
		s.t.Errorf("%d requests were neither recorded nor skipped, and %d count as unsent", unsent, l.Unsent())
	}
}

// finish lets everything take too long that is under way, and then all idle connections end.
func (s *scene) finish() {
	s.t.Helper()
	s.ended = true
	for !s.pool.IsOver() {
		s.until(s.now + s.pool.Timeout.Nanoseconds())
	}
	s.until(s.now + s.pool.bounds.IdleTimeout.Nanoseconds())
	s.checkEmpty()
}
