// Package engine sends requests at their due instants. It owns the connections and the clock.
//
// There are three ways to drive it. Open is the open loop: requests are sent when they are due, however late the server is, and
// response times count from due, so that a stall is felt by all who would have come meanwhile (no coordinated omission).
// Users and Flood are closed loops, and say so in the run: the next request waits for the answer to the last one.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"plimsoll/replay/record"
)

// Recorder takes what the engine measures.
type Recorder interface {
	Start(wall time.Time) error
	Add(r *record.Record)
	Skip(reason string)
	Retried()
}

// Options bound what the engine does. The zero value of a field takes the default.
type Options struct {
	Timeout        time.Duration // start → last byte; default 30 s
	IdleTimeout    time.Duration // how long a connection is kept open without requests; default 60 s
	MaxConnections int           // open at once; default 10,000
	MaxQueued      int           // requests waiting for a connection; past that they are skipped; default 100,000
	PerClient      int           // HTTP/1.1 connections of one client; default 6
	Warmup         time.Duration // requests due before it are marked
	KeepGoing      bool          // go on when the target seems dead
	StartAt        time.Time     // when due instants count from, whatever the time is; zero: from when all is ready
	Revalidates    *atomic.Bool  // set, at any time, when logged 304s are to come; nil: they may always
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
	target  *Target
	headers *Headers
	opts    Options
	rec     Recorder
	abort   context.Context
	pool    *pool
	clock   clock
}

// New makes an engine. When abort is cancelled, all connections are closed and what was in flight is recorded as aborted.
func New(target *Target, headers *Headers, opts Options, rec Recorder, abort context.Context) *Engine {
	return &Engine{target: target, headers: headers, opts: opts.withDefaults(), rec: rec, abort: abort}
}

// Outcome is how a run ended.
type Outcome struct {
	Unsent uint64 // requests that the schedule had and that were not sent
	Cause  error  // why it ended before the schedule did; nil: it did not
	Warn   error  // what went wrong with connections, and the remedy; nil: nothing
}

// prefetched requests stand ready for the engine, so that reading the log never makes it late.
const (
	prefetchBatch   = 64
	prefetchBatches = 64
)

// prefetch runs a sequence in a goroutine of its own. The channel is closed when the sequence has ended.
func prefetch(shots iter.Seq[*Shot], quit <-chan struct{}) <-chan []*Shot {
	out := make(chan []*Shot, prefetchBatches)
	go func() {
		defer close(out)
		batch := make([]*Shot, 0, prefetchBatch)
		for s := range shots {
			batch = append(batch, s)
			if len(batch) < prefetchBatch {
				continue
			}
			select {
			case out <- batch:
			case <-quit:
				return
			}
			batch = make([]*Shot, 0, prefetchBatch)
		}
		if len(batch) > 0 {
			select {
			case out <- batch:
			case <-quit:
			}
		}
	}()
	return out
}

// begin starts the clock: due instants count from here, or from the start that was given, for which it waits but for early.
func (e *Engine) begin(stop context.Context, early time.Duration) (running context.Context, end func()) {
	running, cancel := context.WithCancelCause(stop)
	now := time.Now()
	if !e.opts.StartAt.IsZero() {
		now = now.Add(e.opts.StartAt.Sub(now)) // on the monotonic clock, from which all other instants are taken
		wait(running, time.Until(now)-early)
	}
	e.clock = clock{now}
	watch := &health{}
	if !e.opts.KeepGoing {
		watch.onDeath = func() { cancel(fmt.Errorf("%w for %v", ErrTargetDied, deadAfter)) }
	}
	e.pool = newPool(e.target, e.headers, e.opts, e.clock, e.rec, e.abort, watch)
	if err := e.rec.Start(now); err != nil {
		cancel(err)
	}
	tending, stopTending := context.WithCancel(context.Background())
	go e.pool.tendEvery(tending, 100*time.Millisecond)
	endAbort := context.AfterFunc(e.abort, e.pool.closeAll)
	endStop := context.AfterFunc(running, e.pool.stop)
	return running, func() {
		stopTending()
		endAbort()
		endStop()
		cancel(nil)
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

// outcome waits for what is in flight and says how the run ended.
func (e *Engine) outcome(running context.Context, unsent uint64) Outcome {
	e.pool.drain()
	return Outcome{Unsent: unsent + e.pool.unsent, Cause: context.Cause(running), Warn: e.pool.health.warning()}
}
