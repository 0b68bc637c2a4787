package engine

import (
	"context"
	"iter"
	"sync/atomic"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// Open sends each request when it is due (open loop). The sequence gives them in the order of their due instants. When
// stop is cancelled, nothing more is sent, what is in flight is finished, and the rest of the sequence is counted as
// unsent, as far as that can be done in a moment.
func (e *Engine) Open(stop context.Context, shots iter.Seq[*exchange.Shot]) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	begin, most := e.drivers(e.opts.MaxConnections / connectionsPerLoop)
	active := &atomic.Int64{}
	active.Store(int64(begin))
	byClient := func(s *exchange.Shot, drivers int) int { return int(s.Client % uint32(drivers)) }
	var all []*openPlan
	var plans []plan
	for i, s := range supplies(e.prepared(shots), shotsInBatch, most, active, byClient, quit) {
		p := &openPlan{shots: s}
		all = append(all, p)
		if i < begin {
			s.ready(stop) // the log is open and read ahead before the clock starts
			plans = append(plans, p)
		}
	}
	split := func() plan { return all[active.Add(1)-1] }
	for _, p := range all {
		p.another = split
	}
	return e.run(stop, readyBefore, plans, most, e.opts.MaxConnections)
}

// openPlan is the schedule of the log, as far as it is one driver's: that of every n-th client.
type openPlan struct {
	shots   *supply[*exchange.Shot]
	another func() plan
}

// split redistributes what is not yet read: clients that go to the other driver get connections of its own.
func (p *openPlan) split() plan { return p.another() }

func (p *openPlan) wakeBy(wake func()) { p.shots.wakeBy(wake) }

func (p *openPlan) left(ctx context.Context) uint64 { return p.shots.count(ctx) }

// Next returns the request that is due.
func (p *openPlan) Next(now int64) (*exchange.Shot, int64) {
	s, ok := p.shots.peek()
	switch {
	case !ok:
		return nil, exchange.Never
	case s.DueNS > now:
		return nil, s.DueNS
	}
	p.shots.drop()
	return s, now
}

// Done does nothing: in the open loop nobody waits for an answer.
func (p *openPlan) Done(*exchange.Shot, record.ErrorKind, int64) bool { return false }

// Ended reports whether the log has ended.
func (p *openPlan) Ended() bool { return p.shots.over && len(p.shots.batch) == 0 }
