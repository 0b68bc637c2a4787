package pool

import (
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// done records a request that ended at the instant now, and lets a closed loop go on.
func (p *Pool) done(s *exchange.Shot, now int64, status int, bytes int64, kind record.ErrorKind) {
	p.Record(s, now, status, bytes, kind)
	if s.After != nil {
		s.After(s, now)
	}
	p.settle(1)
}

// settle counts requests as no longer pending.
func (p *Pool) settle(n int) {
	p.mu.Lock()
	p.pending -= n
	p.checkFinished()
	p.mu.Unlock()
}

func (p *Pool) checkFinished() {
	if p.waiting && p.pending == 0 {
		p.waiting = false
		close(p.finished)
	}
}

// Drain waits for all requests that were submitted, then closes every connection. Requests that wait for a connection
// are still sent, unless Stop was called.
func (p *Pool) Drain() {
	p.mu.Lock()
	p.waiting = true
	p.checkFinished()
	p.mu.Unlock()
	<-p.finished
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for conn := range p.all {
		reset(conn)
	}
}

// Stop lets what is in flight finish and forgets what waits for a connection.
func (p *Pool) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, cl := range p.clients {
		p.unsent += uint64(len(cl.queue))
		p.pending -= len(cl.queue)
		p.queued -= len(cl.queue)
		cl.queue = nil
	}
	p.checkFinished()
}

// CloseAll closes every connection, so that requests in flight end as aborted.
func (p *Pool) CloseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.all {
		_ = conn.Close()
	}
}

// Unsent returns how many requests were submitted and not sent, since the pool had been stopped. Call it after Drain.
func (p *Pool) Unsent() uint64 { return p.unsent }
