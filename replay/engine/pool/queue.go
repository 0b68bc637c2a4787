package pool

import (
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// wait lets a request wait for a connection of its client.
func (p *Pool) wait(cl *client, s *exchange.Shot) func() {
	if p.queued >= p.opts.MaxQueued {
		p.pending--
		after := s.After
		return func() {
			p.Recorder.Skip(SkipCap)
			if after != nil {
				after(s, p.Clock.Now())
			}
		}
	}
	p.queued++
	s.Flags |= record.Queued
	cl.queue = append(cl.queue, s)
	return nothing
}

// unqueue takes the first waiting request of a client; nil when there is none.
func (p *Pool) unqueue(cl *client) *exchange.Shot {
	if len(cl.queue) == 0 {
		return nil
	}
	s := cl.queue[0]
	cl.queue[0] = nil
	cl.queue = cl.queue[1:]
	if len(cl.queue) == 0 {
		cl.queue = nil
	}
	p.queued--
	return s
}

// refill opens a connection for a request that waits for one: of this client, else of the first starved one.
func (p *Pool) refill(cl *client) func() {
	if send := p.dialWaiting(cl); send != nil {
		return send
	}
	p.forget(cl)
	for len(p.starved) > 0 && p.open < p.opts.MaxConnections {
		next := p.starved[0]
		p.starved = p.starved[1:]
		next.starved = false
		if send := p.dialWaiting(next); send != nil {
			return send
		}
		p.forget(next)
	}
	return nothing
}

func (p *Pool) dialWaiting(cl *client) func() {
	if len(cl.queue) == 0 || cl.conns >= p.opts.PerClient || cl.http2 != nil || cl.dialing ||
		p.open >= p.opts.MaxConnections {
		return nil
	}
	s := p.unqueue(cl)
	cl.dialing = p.wantsHTTP2(s)
	return p.dial(cl, s)
}

// forget drops a client that has neither connections nor requests.
func (p *Pool) forget(cl *client) {
	if cl.conns == 0 && len(cl.queue) == 0 && !cl.starved && p.clients[cl.key] == cl {
		delete(p.clients, cl.key)
	}
}

// again sends a request once more on a fresh connection, as browsers do when a kept-open connection turns out to be
// closed.
func (p *Pool) again(cl *client, s *exchange.Shot) {
	s.Retried = true
	p.Recorder.Retried()
	p.mu.Lock()
	send := p.place(p.known(cl), s)
	p.mu.Unlock()
	send()
}

// known returns the client that the pool has under a client's key; one that was forgotten meanwhile is added again.
func (p *Pool) known(cl *client) *client {
	if current := p.clients[cl.key]; current != nil {
		return current
	}
	p.clients[cl.key] = cl
	return cl
}
