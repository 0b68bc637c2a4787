package pool

import (
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// What the pool does for HTTP/2: one connection per client, on which all its requests go.

func (p *Pool) wantsHTTP2(s *exchange.Shot) bool {
	return s.Proto == wire.HTTP2 && p.Target.TLS && !p.noHTTP2
}

func (p *Pool) placeHTTP2(cl *client, s *exchange.Shot) func() {
	switch {
	case !s.IsPath():
		p.pending--
		return func() { p.Recorder.Skip(wire.SkipUnsendable2) }
	case cl.http2 != nil:
		h := cl.http2
		return func() { h.submit(s) }
	case cl.dialing || !p.room(cl):
		return p.wait(cl, s)
	}
	cl.dialing = true
	return p.dial(cl, s)
}

// opened makes a connection its client's, and sends what waited for it.
func (p *Pool) opened(h *http2Conn) {
	p.mu.Lock()
	h.client.http2, h.client.dialing = h, false
	p.mu.Unlock()
	p.nextHTTP2(h)
}

// closed takes a connection that accepts no more requests from its client; the next request opens another.
func (p *Pool) closed(h *http2Conn) {
	p.mu.Lock()
	var send func()
	if h.client.http2 == h {
		h.client.http2 = nil
		send = p.dialWaiting(h.client)
	}
	p.mu.Unlock()
	if send != nil {
		send()
	}
}

// nextHTTP2 sends waiting requests of the connection's client for as long as there are free streams.
func (p *Pool) nextHTTP2(h *http2Conn) {
	for {
		p.mu.Lock()
		var s *exchange.Shot
		if h.client.http2 == h {
			s = p.unqueue(h.client)
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

// waitHTTP2 puts a request that a connection would not take at the head of its client's queue, or on another connection
// where this one is closed.
func (p *Pool) waitHTTP2(h *http2Conn, s *exchange.Shot) {
	p.mu.Lock()
	cl := h.client
	if p.stopped {
		p.unsent++
		p.pending--
		p.checkFinished()
		p.mu.Unlock()
		return
	}
	if cl.http2 != h {
		send := p.place(p.known(cl), s)
		p.mu.Unlock()
		send()
		return
	}
	s.Flags |= record.Queued
	cl.queue = append([]*exchange.Shot{s}, cl.queue...)
	p.queued++
	p.mu.Unlock()
	if h.hasRoom() { // a stream ended meanwhile, and found nothing waiting
		p.nextHTTP2(h)
	}
}

// http2Dialed ends a client's attempt at HTTP/2.
func (p *Pool) http2Dialed(cl *client, wanted bool) {
	if wanted {
		p.mu.Lock()
		cl.dialing = false
		p.mu.Unlock()
	}
}

// onlyHTTP1 notes that the server speaks no HTTP/2; what waits for the attempt goes over HTTP/1.1.
func (p *Pool) onlyHTTP1(cl *client) {
	p.mu.Lock()
	p.noHTTP2 = true
	cl.dialing = false
	var sends []func()
	for len(cl.queue) > 0 && cl.conns < p.opts.PerClient && p.open < p.opts.MaxConnections {
		sends = append(sends, p.dial(cl, p.unqueue(cl)))
	}
	p.mu.Unlock()
	for _, send := range sends {
		send()
	}
}
