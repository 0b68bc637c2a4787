package pool

import (
	"crypto/tls"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// connect opens a connection for a request and serves it until it ends.
func (p *Pool) connect(cl *client, s *exchange.Shot) {
	left := p.Timeout - p.Clock.At(p.Clock.Now()).Sub(p.Clock.At(s.StartNS))
	wantHTTP2 := p.Target.TLS && s.Proto == wire.HTTP2
	serverName := target.ServerName(s.Authority(p.Target.Host, p.Headers))
	conn, connectNS, tlsNS, err := p.Target.Dial(p.Abort, p.Target.Addresses[0], serverName, wantHTTP2, left)
	s.ConnectUS, s.TLSUS = record.SaturatedUS(connectNS), record.SaturatedUS(tlsNS)
	if p.Target.TLS {
		s.Flags |= record.TLS
	}
	if err != nil {
		p.http2Dialed(cl, wantHTTP2)
		p.Health.ConnectFailed(err)
		p.done(s, p.Clock.Now(), 0, 0, exchange.KindOf(err))
		p.gone(cl, nil)
		return
	}
	p.mu.Lock()
	p.all[conn] = struct{}{}
	p.mu.Unlock()
	if secure, ok := conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol == "h2" {
		newHTTP2Conn(p, cl, conn).run(s)
		return
	}
	if wantHTTP2 {
		p.onlyHTTP1(cl)
	}
	c := &http1Conn{pool: p, client: cl, net: conn, rd: wire.NewResponseReader(conn)}
	c.take(s)
	c.send(s)
	for c.next() {
	}
	_ = conn.Close()
	p.gone(cl, conn)
}
