// Package engine sends requests at their due instants.
//
// What is sent when is a plan, of which there are three. Open is the open loop: it sends requests when they are due,
// however late the server is, and response times count from due, so that everybody who would have come during a stall
// feels it (no coordinated omission). Users and Max are closed loops, and run.json says so: the next request waits for
// the answer to the last one.
//
// All else has a package: exchange is the life of a request, the same for all; wire knows the bytes of HTTP, and target
// how a connection is opened. A connection pool is driven by event loops (eventloop: plain TCP on Linux) or by goroutines
// (netconn: TLS, HTTP/2, other systems).
package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/eventloop"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/schedule"
)

// A schedule gives logged requests, each with its instant: when it is due, or when it comes in its visit.
type (
	Entry    = schedule.Entry[*exchange.LoggedRequest]
	Schedule = schedule.Seq[*exchange.LoggedRequest]
)

// Options bound what the engine does. The zero value of a field takes the default.
type Options struct {
	Timeout        time.Duration                     // start → last byte; default 30 s
	IdleTimeout    time.Duration                     // how long a connection is kept open without requests; default 60 s
	MaxConnections int                               // open at once; default 10,000
	MaxQueued      int                               // requests waiting for a connection; past that they are skipped; default 100,000
	PerClient      int                               // HTTP/1.1 connections of one client; default 6
	Warmup         time.Duration                     // requests due before it are marked
	KeepGoing      bool                              // continue when the target seems dead
	StartAt        time.Time                         // the start of the run, also if it is past; zero: as soon as everything is ready
	Revalidates    *atomic.Bool                      // true once the log has shown a 304, so that validators are kept; nil: they are always kept
	Sessions       map[uint32]exchange.ClientSession // sessions by the log's client; nil: all are guests
	Software       *wire.Software                    // takes what servers call themselves; nil: nobody asks
	Connections    *atomic.Int64                     // counts those that are open; nil: nobody asks
	Cores          int                               // that may be used; default: Cores of the target
	Goroutines     bool                              // drive plain TCP as TLS is driven, also where event loops could
}

func (o Options) withDefaults() Options {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&o.MaxConnections, 10_000)
	set(&o.MaxQueued, 100_000)
	set(&o.PerClient, 6)
	if o.Connections == nil {
		o.Connections = new(atomic.Int64)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 60 * time.Second
	}
	return o
}

// ErrTargetDied ends a run whose target no longer accepts connections.
var ErrTargetDied = errors.New("the target stopped accepting connections")

// Engine sends to one target. It is used for one run.
type Engine struct {
	opts   Options
	state  *exchange.RunState
	joined func() // called when a driver has joined others; may be nil
}

// New returns an engine. When abort is cancelled, all connections are closed and what was in flight is recorded as
// aborted.
func New(to *target.Target, headers *wire.Headers, opts Options, rec exchange.Recorder, abort context.Context) *Engine {
	opts = opts.withDefaults()
	if opts.Cores == 0 {
		opts.Cores = Cores(to)
	}
	return &Engine{opts: opts, state: &exchange.RunState{
		Target: to, Headers: headers, Timeout: opts.Timeout, Warmup: opts.Warmup, Recorder: rec,
		Validators: exchange.NewValidators(opts.Revalidates), Health: &exchange.Health{}, Abort: abort, Sessions: opts.Sessions,
		Software: opts.Software,
	}}
}

// Outcome is how a run ended.
type Outcome struct {
	Unsent    uint64 // requests that the schedule had and that were not sent
	Uncounted bool   // there were more of them than could be counted in time, or without end
	Cause     error  // why it ended before the schedule did; nil: it did not
	Warn      error  // what went wrong with connections, and the remedy; nil: nothing
	Drivers   int    // that the run had at its end
	Nice      int    // of their threads, as setpriority(2) has it
}

// plan is one driver's share of what is to be sent.
type plan interface {
	exchange.AttemptSource
	wakeBy(wake func())                   // takes what wakes the driver when there is more to send
	countLeft(ctx context.Context) uint64 // requests that the driver has not asked for, as far as ctx lets it count
	split() plan                          // gives a part of it to a driver more; nil: not now
}

// Cores returns how many cores of this machine sending to a target may take: half of them where the target is here too,
// since the others are the server's.
func Cores(to *target.Target) int {
	if to.Local {
		return max(1, runtime.NumCPU()/2)
	}
	return runtime.NumCPU()
}

// drivers returns with how many drivers a run begins, and to how many it may come, of so many that would be of use. On a
// machine of its own it has them all at once; beside the server each further one has to be needed.
func (e *Engine) drivers(of int) (begin, most int) {
	if !e.usesLoops() {
		return 1, 1
	}
	most = max(1, min(e.opts.Cores, mostLoops, of))
	if e.state.Target.Local {
		return 1, most
	}
	return most, most
}

func (e *Engine) usesLoops() bool {
	return eventloop.Supported && !e.state.Target.TLS && !e.opts.Goroutines
}

// run carries out plans, each by a driver of its own; there may come to be up to most of them. It waits for the start
// that was given, less early.
func (e *Engine) run(stop context.Context, early time.Duration, plans []plan, most, connections int) Outcome {
	running, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	e.begin(running, cancel, early)
	p := &workers{engine: e, connections: connections, running: running}
	for _, part := range plans {
		w, err := p.newWorker()
		if err != nil {
			return Outcome{Cause: err}
		}
		p.assign(w, part)
	}
	for _, w := range p.list {
		p.start(w)
	}
	ended, end := context.WithCancel(context.Background())
	go func() {
		p.all.Wait()
		end()
	}()
	p.grow(ended, most)
	out := Outcome{
		Cause: context.Cause(running), Warn: e.state.Health.Warning(), Drivers: len(p.list), Nice: int(e.state.Nice.Load()),
	}
	for _, w := range p.list {
		out.Unsent += w.Unsent()
	}
	if running.Err() != nil {
		var rest uint64
		rest, out.Uncounted = countLeft(p.list)
		out.Unsent += rest
	}
	return out
}

// countsFor is how long the rest of a schedule is counted. It may be without end.
const countsFor = 200 * time.Millisecond

// countLeft returns how many requests no driver has asked for, and whether these are not all. All plans count at once:
// they are supplied in turn from one schedule, which would wait for ever for the one that nobody takes from.
func countLeft[P plan](plans []P) (n uint64, more bool) {
	ctx, cancel := context.WithTimeout(context.Background(), countsFor)
	defer cancel()
	var all sync.WaitGroup
	var total atomic.Uint64
	for _, p := range plans {
		all.Add(1)
		go func() {
			defer all.Done()
			total.Add(p.countLeft(ctx))
		}()
	}
	all.Wait()
	return total.Load(), ctx.Err() != nil
}

// begin starts the clock: due instants count from now, or from the start that was given.
func (e *Engine) begin(running context.Context, cancel context.CancelCauseFunc, early time.Duration) {
	now := time.Now()
	if !e.opts.StartAt.IsZero() {
		now = now.Add(e.opts.StartAt.Sub(now)) // on the monotonic clock, from which all other instants are taken
		wait(running, time.Until(now)-early)
	}
	e.state.Clock = exchange.Clock{T0: now}
	if !e.opts.KeepGoing {
		e.state.Health.OnDeath = func() { cancel(fmt.Errorf("%w for %v", ErrTargetDied, exchange.DeadAfter)) }
	}
	if err := e.state.Recorder.Start(now); err != nil {
		cancel(err)
	}
}

// readyBefore is how long before a given start the open loop waits for its first request as it does for all others.
const readyBefore = 50 * time.Millisecond

// wait sleeps, unless ctx ends before.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
