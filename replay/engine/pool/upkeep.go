package pool

import (
	"context"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// Maintain gives up what has waited for too long and closes what was idle for too long, until the context ends.
func (p *Pool) Maintain(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.expire(p.Clock.Now())
		}
	}
}

// expire gives up requests that have waited for longer than the time-out and closes connections that were idle for too
// long.
func (p *Pool) expire(now int64) {
	var expired []*exchange.Shot
	p.mu.Lock()
	for _, cl := range p.clients {
		for len(cl.queue) > 0 && cl.queue[0].DueNS+p.Timeout.Nanoseconds() < now {
			expired = append(expired, p.unqueue(cl))
		}
	}
	idleBefore := now - p.opts.IdleTimeout.Nanoseconds()
	for oldest := p.idle.oldest(); oldest != nil && oldest.idleSinceNS < idleBefore; oldest = p.idle.oldest() {
		p.unidle(oldest)
		oldest.discard()
	}
	p.mu.Unlock()
	for _, s := range expired {
		if s.StartNS == 0 {
			s.StartNS = now
		}
		p.done(s, now, 0, 0, record.Timeout)
	}
}
