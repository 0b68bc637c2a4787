package exchange

import "slices"

// check holds a life to what is always true of it between two inputs.
func (s *scene) check() {
	s.t.Helper()
	flying, waiting := s.lists()
	s.checkConns(flying)
	s.checkClients(waiting)
	l := s.life
	if l.pending != len(flying)+len(waiting) {
		s.t.Errorf("%d requests pending, but %d under way and %d waiting", l.pending, len(flying), len(waiting))
	}
	if l.queued.Load() != int64(len(waiting)) || len(waiting) > l.bounds.MaxQueued {
		s.t.Errorf("%d requests wait and %d are counted, of %d at most", len(waiting), l.queued.Load(), l.bounds.MaxQueued)
	}
}

// lists returns the requests under way and those that wait, and checks their order and links.
func (s *scene) lists() (flying, waiting []*Shot) {
	s.t.Helper()
	for _, l := range []*list[Shot, *Shot]{&s.life.flying, &s.life.waiting} {
		var all []*Shot
		for one, before := l.first, (*Shot)(nil); one != nil; one, before = one.newer, one {
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
		flying, waiting = waiting, all
	}
	return flying, waiting
}

// checkConns checks the connections, and that what is under way on them is what is under way.
func (s *scene) checkConns(flying []*Shot) {
	s.t.Helper()
	open, under := 0, 0
	var idle []*Conn
	for c, before := s.life.idle.first, (*Conn)(nil); c != nil; c, before = c.newer, c {
		if c.older != before || before != nil && before.idleSinceNS > c.idleSinceNS {
			s.t.Fatalf("the idle connection %d is in the wrong place", c.Link.(*pipe).number)
		}
		idle = append(idle, c)
	}
	if n := len(idle); n > 0 && s.life.idle.last != idle[n-1] || n == 0 && s.life.idle.last != nil {
		s.t.Error("the list of idle connections has a wrong end")
	}
	for i, c := range s.conns {
		if c.closed != c.Link.(*pipe).closed {
			s.t.Errorf("connection %d is closed for one side only", i+1)
		}
		isIdle := slices.Contains(idle, c)
		if c.closed {
			if isIdle || len(c.shots) > 0 || slices.Contains(c.client.conns, c) {
				s.t.Errorf("connection %d is closed and still in use", i+1)
			}
			continue
		}
		open++
		under += len(c.shots)
		if c.idle != isIdle || isIdle != (len(c.shots) == 0) || isIdle != slices.Contains(c.client.idle, c) {
			s.t.Errorf("connection %d: idle %v, among the idle %v, %d under way", i+1, c.idle, isIdle, len(c.shots))
		}
		if c.leaving == slices.Contains(c.client.conns, c) || !c.leaving && s.life.clients[c.client.key] != c.client {
			s.t.Errorf("connection %d: leaving %v, its client says otherwise", i+1, c.leaving)
		}
		if !c.http2 && len(c.shots) > 1 {
			s.t.Errorf("connection %d has %d requests under way", i+1, len(c.shots))
		}
		for _, one := range c.shots {
			if one.conn != c || !slices.Contains(flying, one) {
				s.t.Errorf("%s is under way on connection %d and does not know", s.names[one], i+1)
			}
		}
	}
	if open != s.life.open || open > s.life.bounds.MaxConnections || under != len(flying) {
		s.t.Errorf("%d connections open, %d counted, %d allowed; %d requests on them, %d under way",
			open, s.life.open, s.life.bounds.MaxConnections, under, len(flying))
	}
}

// checkClients checks that each client is there for a reason, and that whoever waits has to.
func (s *scene) checkClients(waiting []*Shot) {
	s.t.Helper()
	l, queued := s.life, 0
	for key, cl := range l.clients {
		queued += len(cl.queue)
		if len(cl.conns) == 0 && len(cl.queue) == 0 {
			s.t.Errorf("client %v is there for nothing", key)
		}
		starved := len(cl.queue) > 0 && len(cl.conns) < l.perClient(cl)
		if cl.starved != starved || starved != slices.Contains(l.starved, cl) {
			s.t.Errorf("client %v waits for the cap: %v, and is among those who do: %v", key, starved, cl.starved)
		}
		if starved && (l.open < l.bounds.MaxConnections || l.idle.first != nil) {
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

// checkEmpty checks that a life that is over, and whose idle connections have ended, has kept nothing.
func (s *scene) checkEmpty() {
	s.t.Helper()
	l := s.life
	if !l.IsOver() {
		s.t.Errorf("it is not over: %d requests pending", l.pending)
	}
	if len(l.clients) > 0 || len(l.starved) > 0 || l.open > 0 || l.idle.first != nil || l.flying.first != nil || l.waiting.first != nil {
		s.t.Errorf("kept: %d clients, %d of them without a connection, %d connections", len(l.clients), len(l.starved), l.open)
	}
	unsent := uint64(0)
	for one, f := range s.fates {
		unsent += uint64(f.submitted - f.recorded - f.skipped)
		if f.told != f.submitted {
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
	for !s.life.IsOver() {
		s.until(s.now + s.life.Timeout.Nanoseconds())
	}
	s.until(s.now + s.life.bounds.IdleTimeout.Nanoseconds())
	s.checkEmpty()
}
