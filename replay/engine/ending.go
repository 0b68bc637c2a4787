package engine

import "plimsoll/replay/record"

// done records a request that ended at the instant now, and tells whoever waits for it.
func (p *pool) done(s *Shot, now int64, status int, bytes int64, kind record.ErrorKind) {
	p.record(s, now, status, bytes, kind)
	if s.after != nil {
		s.after(s, now)
	}
	p.settle(1)
}

// record writes down how a request ended.
func (p *pool) record(s *Shot, now int64, status int, bytes int64, kind record.ErrorKind) {
	if kind != record.None && p.abortCtx.Err() != nil {
		kind = record.Aborted
	}
	p.health.note(now, kind)
	r := record.Record{
		DueNS: s.DueNS, LagUS: record.SaturatedUS(s.startNS - s.DueNS),
		ConnectUS: s.connectUS, TLSUS: s.tlsUS,
		TotalUS: record.SaturatedUS(now - s.startNS),
		Bytes:   bytes, LoggedBytes: s.LoggedBytes, Line: s.Line, Client: s.Client, Route: s.Route,
		Status: uint16(status), LoggedStatus: s.LoggedStatus, Error: kind, Flags: s.flags,
	}
	if s.firstNS != 0 {
		r.TTFBUS = max(1, record.SaturatedUS(s.firstNS-s.startNS))
	}
	p.rec.Add(&r)
}

// settle counts requests as no longer pending.
func (p *pool) settle(n int) {
	p.mu.Lock()
	p.pending -= n
	p.checkFinished()
	p.mu.Unlock()
}

func (p *pool) checkFinished() {
	if p.waiting && p.pending == 0 {
		p.waiting = false
		close(p.finished)
	}
}

// wait for what was submitted; then close everything. Waiting requests are sent still, unless stop was called.
func (p *pool) drain() {
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

// stop lets what is in flight finish and forgets what waits for a connection.
func (p *pool) stop() {
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

// closeAll ends every connection, so that requests in flight end as aborted.
func (p *pool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.all {
		_ = conn.Close()
	}
}
