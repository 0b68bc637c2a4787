package engine

import (
	"context"
	"time"

	"plimsoll/replay/record"
)

// tend gives up requests that have waited for longer than the time-out and closes connections that were idle for too long.
func (p *pool) tend(now int64) {
	var expired []*Shot
	p.mu.Lock()
	for _, cl := range p.clients {
		for len(cl.queue) > 0 && cl.queue[0].DueNS+p.opts.Timeout.Nanoseconds() < now {
			expired = append(expired, p.unqueue(cl))
		}
	}
	for oldest := p.idle.oldest(); oldest != nil && oldest.idleSinceNS+p.opts.IdleTimeout.Nanoseconds() < now; oldest = p.idle.oldest() {
		p.unidle(oldest)
		oldest.discard()
	}
	p.mu.Unlock()
	for _, s := range expired {
		if s.startNS == 0 {
			s.startNS = now
		}
		p.done(s, now, 0, 0, record.Timeout)
	}
}

// leave closes the idle connections of a client that will not come back.
func (p *pool) leave(key clientKey) {
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
	if cl.h2 != nil {
		cl.h2.leave()
	}
}

// tendEvery runs tend until the context ends.
func (p *pool) tendEvery(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.tend(p.clock.now())
		}
	}
}
