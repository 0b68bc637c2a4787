package engine

import (
	"context"
	"iter"
	"sync"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/pool"
)

// Flood sends the requests of a sequence over n connections, each as soon as the one before it is answered (closed
// loop): as fast as the server goes. A request is due when its connection is free for it, so response time is service
// time. The sequence ends early after limit, where that is not 0.
func (e *Engine) Flood(stop context.Context, shots iter.Seq[*exchange.Shot], n int, limit time.Duration) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	batches := prefetch(shots, quit)
	first, more := <-batches

	e.opts.PerClient = 1
	e.opts.MaxConnections = max(e.opts.MaxConnections, n)
	running, end := e.begin(stop, 0)
	defer end()
	f := &flood{e: e, running: running, batches: batches, batch: first, ended: !more, limitNS: limit.Nanoseconds()}
	if e.session.Target.TLS || !f.byEpoll(n) {
		f.bySlots(n)
	}
	unsent := uint64(0)
	if running.Err() != nil {
		unsent = uint64(len(f.batch)) + f.left + e.countRest(batches)
	}
	return e.outcome(running, unsent)
}

// bySlots sends through the pool, which can do all that the open loop can.
func (f *flood) bySlots(n int) {
	f.slots.Add(n)
	for slot := range uint32(n) {
		go f.next(slot)
	}
	f.slots.Wait()
}

// flood hands the requests of one sequence to n slots.
type flood struct {
	e       *Engine
	running context.Context
	limitNS int64
	slots   sync.WaitGroup

	mu      sync.Mutex
	batches <-chan []*exchange.Shot
	batch   []*exchange.Shot
	ended   bool
	left    uint64 // taken, and not sent
}

// next sends the next request on a slot; the slot ends with the sequence.
func (f *flood) next(slot uint32) {
	s := f.take()
	if s == nil {
		f.slots.Done()
		return
	}
	s.After = func(*exchange.Shot, int64) { f.next(slot) }
	key := pool.Key{Client: slot}
	if f.e.session.Target.TLS {
		key.Host = s.Host
	}
	f.e.pool.Submit(s, key)
}

// take returns the next request, due now; nil when there is none, or the run is over.
func (f *flood) take() *exchange.Shot {
	now := f.e.session.Clock.Now()
	if f.over(now) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refill()
	if len(f.batch) == 0 {
		return nil
	}
	s := f.batch[0]
	f.batch[0] = nil
	f.batch = f.batch[1:]
	s.DueNS, s.StartNS = now, now
	return s
}

// takeSome returns a few requests at once, for a loop that sends many.
func (f *flood) takeSome() []*exchange.Shot {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refill()
	n := min(1, len(f.batch))
	if len(f.batch) > 2*floodShare {
		n = floodShare
	}
	some := f.batch[:n:n]
	f.batch = f.batch[len(some):]
	return some
}

// floodShare is how many requests are taken at once; towards the end of the log it is one at a time, so that no
// connection is idle while another has a stock of them.
const floodShare = 16

// leave counts requests that were taken and will not be sent.
func (f *flood) leave(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left += uint64(n)
}

func (f *flood) refill() {
	for len(f.batch) == 0 && !f.ended {
		batch, more := <-f.batches
		f.batch, f.ended = batch, !more
	}
}

// over reports whether nothing more is to be sent.
func (f *flood) over(now int64) bool {
	return (f.limitNS > 0 && now >= f.limitNS) || f.running.Err() != nil
}
