package engine

import (
	"context"
	"iter"
	"sync"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// Max sends the requests of a sequence over n connections, each as soon as the one before it is answered (closed loop):
// as fast as the server goes. A request is due when its connection is free for it, so response time is service time.
// The sequence ends early after limit, where that is not 0.
func (e *Engine) Max(stop context.Context, shots iter.Seq[*exchange.Shot], n int, limit time.Duration) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	e.opts.PerClient = 1
	e.session.Unhurried = true
	stock := &stock{shots: supplies(e.prepared(shots), shotsInBatch, 1, nil, quit)[0]}
	stock.shots.ready(stop)
	loops := e.drivers(n)
	var plans []plan
	for i := range loops {
		p := &maxPlan{stock: stock, limitNS: limit.Nanoseconds(), withHost: e.session.Target.TLS}
		for slot := i; slot < n; slot += loops {
			p.free = append(p.free, uint32(slot))
		}
		plans = append(plans, p)
	}
	return e.run(stop, 0, plans, n)
}

// stock is what the plans of one sequence share.
type stock struct {
	mu    sync.Mutex
	shots *supply[*exchange.Shot]
	once  sync.Once
}

// take returns the next request; nil where there is none, or none yet.
func (s *stock) take() (one *exchange.Shot, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.shots.peek()
	if ok {
		s.shots.drop()
	}
	return one, s.shots.over
}

// restNS is how long a connection that could not be opened rests before the next request on it.
const restNS = int64(100e6)

// rest is a slot that rests.
type rest struct {
	slot    uint32
	untilNS int64
}

// maxPlan keeps slots at work, each with one request at a time.
type maxPlan struct {
	stock    *stock
	limitNS  int64
	withHost bool
	free     []uint32
	resting  []rest
	over     bool
}

func (p *maxPlan) wakeBy(wake func()) { p.stock.shots.wakeBy(wake) }

func (p *maxPlan) left(ctx context.Context) uint64 {
	var n uint64
	p.stock.once.Do(func() { n = p.stock.shots.count(ctx) })
	return n
}

// Next returns a request for a slot that is free.
func (p *maxPlan) Next(now int64) (*exchange.Shot, int64) {
	if len(p.resting) > 0 && p.resting[0].untilNS <= now {
		p.free = append(p.free, p.resting[0].slot)
		p.resting = p.resting[1:]
	}
	again := exchange.Never
	if len(p.resting) > 0 {
		again = p.resting[0].untilNS
	}
	if len(p.free) == 0 {
		return nil, again
	}
	s := p.next(now)
	if s == nil && !p.over && p.limitNS > 0 {
		again = min(again, p.limitNS)
	}
	if s == nil {
		return nil, again
	}
	last := len(p.free) - 1
	s.Key = exchange.Key{Client: p.free[last]}
	p.free = p.free[:last]
	if p.withHost {
		s.Key.Host = s.Host
	}
	s.DueNS = now
	return s, now
}

// next takes the next request of the sequence; nil when there is none, or none yet.
func (p *maxPlan) next(now int64) *exchange.Shot {
	p.over = p.over || p.limitNS > 0 && now >= p.limitNS
	if p.over {
		return nil
	}
	s, ended := p.stock.take()
	p.over = s == nil && ended
	return s
}

// Done makes the request's slot free.
func (p *maxPlan) Done(s *exchange.Shot, kind record.ErrorKind, now int64) bool {
	switch kind {
	case record.ConnectRefused, record.ConnectFailed, record.TLSFailed:
		p.resting = append(p.resting, rest{s.Key.Client, now + restNS})
	default:
		p.free = append(p.free, s.Key.Client)
	}
	return false
}

// Ended reports whether the sequence has ended.
func (p *maxPlan) Ended() bool { return p.over }
