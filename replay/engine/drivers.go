// The drivers of a run, and how another joins them when all are busy.

package engine

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/eventloop"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/netconn"
)

// driver carries out one plan.
type driver interface {
	Wake()
	Run(stop context.Context)
	Unsent() uint64
}

// Bounds of the number of event loops. One does a hundred thousand requests a second.
const (
	mostLoops          = 8
	connectionsPerLoop = 64 // where a cap is shared out: below that it would be too unevenly
)

// workers are those of a run. Others join while it is under way.
type workers struct {
	engine      *Engine
	connections int // that all drivers may have open
	running     context.Context
	pools       atomic.Int64
	all         sync.WaitGroup

	mu    sync.Mutex
	list  []*worker
	spare *worker // joins when a plan is split
}

// worker is a driver and its plan, of which it gives a part away when another joins.
type worker struct {
	driver
	plan
	starts atomic.Pointer[func(part plan)]
}

// Next returns the request that is due, as the plan does.
func (w *worker) Next(now int64) (*exchange.Attempt, int64) {
	if w.starts.Load() != nil {
		start := w.starts.Swap(nil)
		(*start)(w.split())
	}
	return w.plan.Next(now)
}

// newWorker returns a driver that has no plan yet.
func (p *workers) newWorker() (*worker, error) {
	e, w := p.engine, &worker{}
	bounds := exchange.Bounds{
		IdleTimeout: e.opts.IdleTimeout, MaxConnections: p.connections, Pools: &p.pools, Number: len(p.list),
		MaxQueued: e.opts.MaxQueued, PerClient: e.opts.PerClient, Count: e.opts.Connections,
	}
	if !e.usesLoops() {
		w.driver = netconn.New(e.state, bounds, w)
		return w, nil
	}
	loop, err := eventloop.New(e.state, bounds, w)
	if err != nil {
		return nil, fmt.Errorf("an event loop: %w", err)
	}
	w.driver = loop
	return w, nil
}

// assign gives a worker its plan. It is to be started.
func (p *workers) assign(w *worker, part plan) {
	w.plan = part
	part.wakeBy(w.Wake)
	p.list = append(p.list, w)
	p.pools.Store(int64(len(p.list)))
}

func (p *workers) start(w *worker) {
	p.all.Add(1)
	go func() {
		defer p.all.Done()
		w.Run(p.running)
	}()
}

// How busy drivers are before another joins them, and for how long. Tests are less patient.
var (
	busyShare = 0.75
	looksEach = 100 * time.Millisecond
)

const busyLooks = 3

// grow returns when all drivers have ended, as ended says. Until then it lets one more join each time that all there are
// have been busy for a while, up to most of them.
func (p *workers) grow(ended context.Context, most int) {
	ticker := time.NewTicker(looksEach)
	defer ticker.Stop()
	var before []time.Duration
	last, busy := time.Now(), 0
	for p.count() < most {
		select {
		case <-ended.Done():
			p.release()
			return
		case now := <-ticker.C:
			spent := p.processorTimes()
			if busy++; !areBusy(before, spent, now.Sub(last)) {
				busy = 0
			}
			before, last = spent, now
			if busy >= busyLooks {
				busy = 0
				p.divide()
			}
		}
	}
	<-ended.Done()
	p.release()
}

func (p *workers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list)
}

// release lets a driver that nobody needed close what it has opened.
func (p *workers) release() {
	if p.spare != nil {
		ended, end := context.WithCancel(context.Background())
		end()
		p.spare.plan = &openLoop{attempts: &supply[*exchange.Attempt]{over: true}}
		p.spare.Run(ended)
	}
}

// processorTimes returns the processor time of each driver's thread so far.
func (p *workers) processorTimes() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Duration
	for _, w := range p.list {
		if loop, ok := w.driver.(*eventloop.Loop); ok {
			all = append(all, loop.ProcessorTime())
		}
	}
	return all
}

func areBusy(before, after []time.Duration, meanwhile time.Duration) bool {
	for i := range after {
		if len(before) != len(after) || float64(after[i]-before[i]) < busyShare*float64(meanwhile) {
			return false
		}
	}
	return true
}

// divide has a plan split when its driver next looks at it, where each can then have the connections that it has now.
func (p *workers) divide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.list)
	if int(p.engine.opts.Connections.Load()) > p.connections/(n+1) {
		return
	}
	if p.spare == nil {
		var err error
		if p.spare, err = p.newWorker(); err != nil {
			return // those that there are go on
		}
	}
	start := func(part plan) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if part != nil {
			w := p.spare
			p.spare = nil
			p.assign(w, part)
			p.start(w)
			if p.engine.joined != nil {
				p.engine.joined()
			}
		}
	}
	largest := p.list[n&^(1<<(bits.Len(uint(n))-1))] // they are halved in turn
	largest.starts.Store(&start)
	largest.Wake()
}
