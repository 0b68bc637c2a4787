package pool

import "plimsoll/replay/engine/exchange"

// Key names whose connections a request uses: those of one client to one host.
type Key struct {
	Client uint32
	Host   string
}

// client is the state of one client's connections to one host.
type client struct {
	key     Key
	conns   int // open or being opened
	idle    []*http1Conn
	queue   []*exchange.Shot // waiting, in order
	http2   *http2Conn
	dialing bool // a connection that may become the HTTP/2 one is being opened
	starved bool
}

// Leave closes the idle connections of a client that will not come back.
func (p *Pool) Leave(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cl := p.clients[key]
	if cl == nil {
		return
	}
	for len(cl.idle) > 0 {
		c := cl.idle[0]
		p.unidle(c)
		c.discard()
	}
	if cl.http2 != nil {
		cl.http2.leave()
	}
}
