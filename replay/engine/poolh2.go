package engine

import "plimsoll/replay/record"

// What the pool does for HTTP/2: one connection a client, on which all its requests go.

// opened makes a connection its client's, and sends what waited for it.
func (p *pool) opened(h *h2) {
	p.mu.Lock()
	h.cl.h2, h.cl.h2Dials = h, false
	p.mu.Unlock()
	p.nextHTTP2(h)
}

// closed takes a connection that accepts no more requests from its client; the next request opens another.
func (p *pool) closed(h *h2) {
	p.mu.Lock()
	var send func()
	if h.cl.h2 == h {
		h.cl.h2 = nil
		send = p.dialWaiting(h.cl)
	}
	p.mu.Unlock()
	if send != nil {
		send()
	}
}

// nextHTTP2 sends waiting requests of the connection's client for as long as there are free streams.
func (p *pool) nextHTTP2(h *h2) {
	for {
		p.mu.Lock()
		var s *Shot
		if h.cl.h2 == h {
			s = p.unqueue(h.cl)
		}
		p.mu.Unlock()
		if s == nil {
			return
		}
		h.mu.Lock()
		err := h.write(s)
		h.mu.Unlock()
		if err != nil {
			p.waitHTTP2(h, s)
			return
		}
	}
}

// waitHTTP2 puts a request that a connection would not take at the head of its client's queue, or on another connection where
// this one is closed.
func (p *pool) waitHTTP2(h *h2, s *Shot) {
	p.mu.Lock()
	cl := h.cl
	if p.stopped {
		p.unsent++
		p.pending--
		p.checkFinished()
		p.mu.Unlock()
		return
	}
	if cl.h2 != h {
		send := p.place(p.known(cl), s)
		p.mu.Unlock()
		send()
		return
	}
	s.flags |= record.Queued
	cl.queue = append([]*Shot{s}, cl.queue...)
	p.queued++
	p.mu.Unlock()
	if h.hasRoom() { // a stream ended meanwhile, and found nothing waiting
		p.nextHTTP2(h)
	}
}
