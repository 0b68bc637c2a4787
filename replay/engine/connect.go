package engine

import (
	"crypto/tls"

	"plimsoll/replay/record"
)

// connect opens a connection for a request and serves it until it ends.
func (p *pool) connect(cl *client, s *Shot) {
	left := p.opts.Timeout - p.clock.at(p.clock.now()).Sub(p.clock.at(s.startNS))
	wantHTTP2 := p.target.TLS && s.Proto == HTTP2
	serverName := hostOnly(s.host(p.target, p.headers))
	conn, connectNS, tlsNS, err := p.target.dial(p.abortCtx, p.target.Addresses[0], serverName, wantHTTP2, left)
	s.connectUS, s.tlsUS = record.SaturatedUS(connectNS), record.SaturatedUS(tlsNS)
	if p.target.TLS {
		s.flags |= record.TLS
	}
	if err != nil {
		p.h2Dialed(cl, wantHTTP2)
		p.health.failed(err)
		p.done(s, p.clock.now(), 0, 0, kindOf(err))
		p.gone(cl, nil)
		return
	}
	p.mu.Lock()
	p.all[conn] = struct{}{}
	p.mu.Unlock()
	if secure, ok := conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol == "h2" {
		newH2(p, cl, conn).run(s)
		return
	}
	if wantHTTP2 {
		p.onlyHTTP1(cl)
	}
	c := &h1{pool: p, cl: cl, net: conn, rd: newReader(conn)}
	c.take(s)
	c.send(s)
	for c.exchange() {
	}
	_ = conn.Close()
	p.gone(cl, conn)
}

// h2Dialed ends a client's attempt at HTTP/2.
func (p *pool) h2Dialed(cl *client, wanted bool) {
	if wanted {
		p.mu.Lock()
		cl.h2Dials = false
		p.mu.Unlock()
	}
}

// onlyHTTP1 notes that the server speaks no HTTP/2; what waits for the attempt goes over HTTP/1.1.
func (p *pool) onlyHTTP1(cl *client) {
	p.mu.Lock()
	p.noHTTP2 = true
	cl.h2Dials = false
	var sends []func()
	for len(cl.queue) > 0 && cl.conns < p.opts.PerClient && p.open < p.opts.MaxConnections {
		sends = append(sends, p.dial(cl, p.unqueue(cl)))
	}
	p.mu.Unlock()
	for _, send := range sends {
		send()
	}
}
