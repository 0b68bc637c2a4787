// Package engine sends requests at their due instants.
//
// What is sent when is a plan, of which there are three. Open is the open loop: it sends requests when they are due,
// however late the server is, and response times count from due, so that everybody who would have come during a stall
// feels it (no coordinated omission). Users and Max are closed loops, and run.json says so: the next request waits for
// the answer to the last one.
//
// All else has a package: exchange is the life of a request, the same for all; wire knows the bytes of HTTP, and target
// how a connection is opened. A life is driven by event loops (eventloop: plain TCP on Linux) or by goroutines (netconn:
// TLS, HTTP/2, other systems).
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
	"plimsoll/replay/engine/netconn"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
)

// Options bound what the engine does. The zero value of a field takes the default.
type Options struct {
	Timeout        time.Duration              // start → last byte; default 30 s
	IdleTimeout    time.Duration              // how long a connection is kept open without requests; default 60 s
	MaxConnections int                        // open at once; default 10,000
	MaxQueued      int                        // requests waiting for a connection; past that they are skipped; default 100,000
	PerClient      int                        // HTTP/1.1 connections of one client; default 6
	Warmup         time.Duration              // requests due before it are marked
	KeepGoing      bool                       // continue when the target seems dead
	StartAt        time.Time                  // the start of the run, also if it is past; zero: as soon as everything is ready
	Revalidates    *atomic.Bool               // true once the log has shown a 304, so that validators are kept; nil: they are always kept
	Members        map[uint32]exchange.Member // sessions by the log's client; nil: all are guests
	Connections    *atomic.Int64              // counts those that are open; nil: nobody asks
	Goroutines     bool                       // drive plain TCP as TLS is driven, also where event loops could
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
	opts    Options
	session *exchange.Session
}

// New returns an engine. When abort is cancelled, all connections are closed and what was in flight is recorded as
// aborted.
func New(to *target.Target, headers *wire.Headers, opts Options, rec exchange.Recorder, abort context.Context) *Engine {
	opts = opts.withDefaults()
	return &Engine{opts: opts, session: &exchange.Session{
		Target: to, Headers: headers, Timeout: opts.Timeout, Warmup: opts.Warmup, Recorder: rec,
		Validators: exchange.NewValidators(opts.Revalidates), Health: &exchange.Health{}, Abort: abort, Members: opts.Members,
	}}
}

// Outcome is how a run ended.
type Outcome struct {
	Unsent    uint64 // requests that the schedule had and that were not sent
	Uncounted bool   // there were more of them than could be counted in time, or without end
	Cause     error  // why it ended before the schedule did; nil: it did not
	Warn      error  // what went wrong with connections, and the remedy; nil: nothing
}

// plan is one driver's share of what is to be sent.
type plan interface {
	exchange.Plan
	wakeBy(wake func())              // takes what wakes the driver when there is more to send
	left(ctx context.Context) uint64 // requests that the driver has not asked for, as far as ctx lets it count
}

// driver drives the life of one plan.
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

// drivers returns how many drivers share a run, at most so many.
func (e *Engine) drivers(most int) int {
	if !e.byLoops() {
		return 1
	}
	return max(1, min(runtime.NumCPU(), mostLoops, most))
}

func (e *Engine) byLoops() bool {
	return eventloop.Supported && !e.session.Target.TLS && !e.opts.Goroutines
}

// run carries out plans, each by a driver of its own. It waits for the start that was given, less early.
func (e *Engine) run(stop context.Context, early time.Duration, plans []plan, connections int) Outcome {
	running, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	e.begin(running, cancel, early)
	drivers, err := e.newDrivers(plans, connections)
	if err != nil {
		return Outcome{Cause: err}
	}
	var all sync.WaitGroup
	for _, d := range drivers {
		all.Add(1)
		go func() {
			defer all.Done()
			d.Run(running)
		}()
	}
	all.Wait()
	out := Outcome{Cause: context.Cause(running), Warn: e.session.Health.Warning()}
	for _, d := range drivers {
		out.Unsent += d.Unsent()
	}
	if running.Err() != nil {
		var rest uint64
		rest, out.Uncounted = left(plans)
		out.Unsent += rest
	}
	return out
}

// countsFor is how long the rest of a schedule is counted. It may be without end.
const countsFor = 200 * time.Millisecond

// left returns how many requests no driver has asked for, and whether these are not all. All plans count at once: they
// are supplied in turn from one schedule, which would wait for ever for the one that nobody takes from.
func left(plans []plan) (n uint64, more bool) {
	ctx, cancel := context.WithTimeout(context.Background(), countsFor)
	defer cancel()
	var all sync.WaitGroup
	var total atomic.Uint64
	for _, p := range plans {
		all.Add(1)
		go func() {
			defer all.Done()
			total.Add(p.left(ctx))
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
	e.session.Clock = exchange.Clock{T0: now}
	if !e.opts.KeepGoing {
		e.session.Health.OnDeath = func() { cancel(fmt.Errorf("%w for %v", ErrTargetDied, exchange.DeadAfter)) }
	}
	if err := e.session.Recorder.Start(now); err != nil {
		cancel(err)
	}
}

func (e *Engine) newDrivers(plans []plan, connections int) ([]driver, error) {
	var drivers []driver
	for i, p := range plans {
		bounds := exchange.Bounds{
			IdleTimeout: e.opts.IdleTimeout, MaxConnections: share(connections, len(plans), i),
			MaxQueued: e.opts.MaxQueued, PerClient: e.opts.PerClient, Count: e.opts.Connections,
		}
		if !e.byLoops() {
			drivers = append(drivers, netconn.New(e.session, bounds, p))
		} else if loop, err := eventloop.New(e.session, bounds, p); err == nil {
			drivers = append(drivers, loop)
		} else {
			return nil, fmt.Errorf("an event loop: %w", err)
		}
		p.wakeBy(drivers[i].Wake)
	}
	return drivers, nil
}

// share returns the i-th of n shares of a total.
func share(total, n, i int) int {
	if i < total%n {
		return total/n + 1
	}
	return total / n
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
