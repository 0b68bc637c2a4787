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
	stock := &stock{shots: supplyOne(e.prepared(shots), shotsInBatch, quit)}
	stock.shots.ready(stop)
	begin, most := e.drivers(n)
	var plans []plan
	for i := range begin {
		p := &maxPlan{stock: stock, limitNS: limit.Nanoseconds(), withHost: e.session.Target.TLS}
		for slot := i; slot < n; slot += begin {
			p.free = append(p.free, uint32(slot))
		}
		p.slots = len(p.free)
		plans = append(plans, p)
	}
	return e.run(stop, 0, plans, most, most*n) // the slots keep it to n, also while they change hands
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
	slots    int // free, resting and at work
	free     []uint32
	resting  []rest
	over     bool

	heir  *maxPlan // gets the next slots that come free
	gives int      // so many

	mu    sync.Mutex
	wake  func()
	given []uint32 // by another driver
}

func (p *maxPlan) wakeBy(wake func()) {
	p.wake = wake
	p.stock.shots.wakeBy(wake)
}

// split gives half of the slots away, each when its request is answered. Only where all are at work is that sure to come.
func (p *maxPlan) split() plan {
	if p.over || p.gives > 0 || p.slots < 2 || len(p.free) > 0 || len(p.resting) > 0 {
		return nil
	}
	p.gives = p.slots / 2
	p.heir = &maxPlan{stock: p.stock, limitNS: p.limitNS, withHost: p.withHost, slots: p.gives}
	p.slots -= p.gives
	return p.heir
}

// give takes over a slot from another driver.
func (p *maxPlan) give(slot uint32) {
	p.mu.Lock()
	p.given = append(p.given, slot)
	p.mu.Unlock()
	p.wake()
}

func (p *maxPlan) takeGiven() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, p.given...)
	p.given = nil
}

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
		p.takeGiven()
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
func (p *maxPlan) Done(s *exchange.Shot, kind record.ErrorKind, now int64) (leaves bool) {
	if p.gives > 0 {
		p.gives--
		p.heir.give(s.Key.Client)
		return true
	}
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
