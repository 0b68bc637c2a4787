// Package engine sends requests at their due instants. It owns the clock and the loops.
//
// There are three loops. Open is the open loop: it sends requests when they are due, however late the server is, and
// response times count from due, so that everybody who would have come during a stall feels it (no coordinated
// omission). Users and Flood are closed loops, and run.json says so: the next request waits for the answer to the last
// one.
//
// All else has a package: wire knows the bytes of HTTP, target how a connection is opened, exchange what is measured of
// a request and how that becomes a record, and pool which connection a request goes to.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/pool"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
)

// Options bound what the engine does. The zero value of a field takes the default.
type Options struct {
	Timeout        time.Duration // start → last byte; default 30 s
	IdleTimeout    time.Duration // how long a connection is kept open without requests; default 60 s
	MaxConnections int           // open at once; default 10,000
	MaxQueued      int           // requests waiting for a connection; past that they are skipped; default 100,000
	PerClient      int           // HTTP/1.1 connections of one client; default 6
	Warmup         time.Duration // requests due before it are marked
	KeepGoing      bool          // continue when the target seems dead
	StartAt        time.Time     // the start of the run, also if it is past; zero: as soon as everything is ready
	Revalidates    *atomic.Bool  // true once the log has shown a 304, so that validators are kept; nil: they are always kept
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
	pool    *pool.Pool // set by begin
}

// New returns an engine. When abort is cancelled, all connections are closed and what was in flight is recorded as
// aborted.
func New(to *target.Target, headers *wire.Headers, opts Options, rec exchange.Recorder, abort context.Context) *Engine {
	opts = opts.withDefaults()
	return &Engine{opts: opts, session: &exchange.Session{
		Target: to, Headers: headers, Timeout: opts.Timeout, Warmup: opts.Warmup, Recorder: rec,
		Validators: exchange.NewValidators(opts.Revalidates), Health: &exchange.Health{}, Abort: abort,
	}}
}

// Outcome is how a run ended.
type Outcome struct {
	Unsent uint64 // requests that the schedule had and that were not sent
	Cause  error  // why it ended before the schedule did; nil: it did not
	Warn   error  // what went wrong with connections, and the remedy; nil: nothing
}

// begin starts the clock: due instants count from now, or from the start that was given. It waits for that one, less
// early.
func (e *Engine) begin(stop context.Context, early time.Duration) (running context.Context, end func()) {
	running, cancel := context.WithCancelCause(stop)
	now := time.Now()
	if !e.opts.StartAt.IsZero() {
		now = now.Add(e.opts.StartAt.Sub(now)) // on the monotonic clock, from which all other instants are taken
		wait(running, time.Until(now)-early)
	}
	e.session.Clock = exchange.Clock{T0: now}
	if !e.opts.KeepGoing {
		e.session.Health.OnDeath = func() { cancel(fmt.Errorf("%w for %v", ErrTargetDied, exchange.DeadAfter)) }
	}
	e.pool = pool.New(e.session, pool.Options{
		IdleTimeout: e.opts.IdleTimeout, MaxConnections: e.opts.MaxConnections,
		MaxQueued: e.opts.MaxQueued, PerClient: e.opts.PerClient,
	})
	if err := e.session.Recorder.Start(now); err != nil {
		cancel(err)
	}
	upkeep, endUpkeep := context.WithCancel(context.Background())
	go e.pool.Maintain(upkeep, upkeepEvery)
	endAbort := context.AfterFunc(e.session.Abort, e.pool.CloseAll)
	endStop := context.AfterFunc(running, e.pool.Stop)
	return running, func() {
		endUpkeep()
		endAbort()
		endStop()
		cancel(nil)
	}
}

// upkeepEvery is how often the pool looks for what has waited or idled for too long.
const upkeepEvery = 100 * time.Millisecond

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

// outcome waits for what is in flight and says how the run ended.
func (e *Engine) outcome(running context.Context, unsent uint64) Outcome {
	e.pool.Drain()
	return Outcome{Unsent: unsent + e.pool.Unsent(), Cause: context.Cause(running), Warn: e.session.Health.Warning()}
}
