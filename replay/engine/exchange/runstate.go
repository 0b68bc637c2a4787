// What all connection pools of a run share, and what they stand on: a source of requests, a transport, a recorder.

package exchange

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
	"plimsoll/replay/served"
)

// RunState is what all connection pools of a run share.
type RunState struct {
	Target     *target.Target
	Headers    *wire.Headers
	Clock      Clock
	Timeout    time.Duration // start → last byte
	Warmup     time.Duration // attempts due before it are marked
	Recorder   Recorder
	Validators *Validators
	Sessions   map[uint32]ClientSession // by the log's client; nil: all are guests
	Health     *Health
	Software   *wire.Software  // takes what servers call themselves; nil: nobody asks
	Abort      context.Context // cancelled: what is in flight is given up
	ClosedLoop bool            // nothing is due at an instant of its own: those who send need no precedence

	// Set by those who drive pools, once they know.
	Nice atomic.Int64 // of their threads

	queued atomic.Int64 // requests of all pools that wait for a connection
}

// Recorder takes what the engine measures.
type Recorder interface {
	Start(wall time.Time) error
	Add(r *record.Record)
	Skip(reason string)
	Retried()
}

// Clock counts nanoseconds since the start of the run. It is monotonic: the wall clock may be set meanwhile.
type Clock struct{ T0 time.Time }

// Now returns the nanoseconds since the start of the run.
func (c Clock) Now() int64 { return int64(time.Since(c.T0)) }

// AttemptSource gives the requests that are due.
type AttemptSource interface {
	// Next returns a request that is due at now; else nil, and when to ask again.
	Next(now int64) (a *Attempt, againNS int64)
	// Done tells that a request has ended, or was skipped. It returns whether its client will not come back.
	Done(a *Attempt, kind record.ErrorKind, now int64) (leaves bool)
	// Ended reports whether nothing is to come but by Done.
	Ended() bool
}

// Never is later than any run ends.
const Never = int64(1) << 62

// Transport does what a pool decides. Its methods do not block and do not call the pool; results arrive later.
type Transport interface {
	Open(c *Conn, a *Attempt) // opens a connection for a request; → Opened, OpenFailed
	Send(c *Conn, a *Attempt) // → Answered, Failed, Refused, Closed
	Cancel(c *Conn, a *Attempt)
	Close(c *Conn)
	Received(c *Conn, a *Attempt) PartialAnswer
}

// PartialAnswer is what has come of an answer.
type PartialAnswer struct {
	Status  int
	Bytes   int64
	Served  served.By
	FirstNS int64
}

// Bounds are the limits of a pool.
type Bounds struct {
	IdleTimeout    time.Duration // how long a connection is kept open without requests
	MaxConnections int           // open at once, of all pools
	Pools          *atomic.Int64 // that share them; nil: there is one
	Number         int           // of this pool, from 0
	MaxQueued      int           // requests of all pools waiting for a connection; past that they are skipped
	PerClient      int           // HTTP/1.1 connections of one client
	Count          *atomic.Int64 // of the connections that are open, of all pools; nil: nobody asks
}

// share returns this pool's share of the connections.
func (b *Bounds) share() int {
	if b.Pools == nil {
		return b.MaxConnections
	}
	n := int(b.Pools.Load())
	if b.Number < b.MaxConnections%n {
		return b.MaxConnections/n + 1
	}
	return b.MaxConnections / n
}

// SkipCap is the reason for not sending a request that found too many others waiting.
const SkipCap = "cap_reached"

// A logged 304 says that the browser had asked whether what it had was still good. To ask again, the engine does as
// browsers do: it keeps the validators (Last-Modified, ETag) that came with the last 200 of each target, for all
// clients together, and sends them back. A server that compares dates for equality, as nginx does, answers 304 to
// nothing else.

// maxValidators bounds the memory; past it an arbitrary target is forgotten.
const maxValidators = 1 << 16

// Validators keeps the validators of a run.
type Validators struct {
	wanted *atomic.Bool // nil: always
	seed   maphash.Seed
	mu     sync.Mutex
	of     map[uint64]wire.Validator
}

// NewValidators returns an empty store. It keeps nothing while wanted is false; nil stands for true.
func NewValidators(wanted *atomic.Bool) *Validators {
	return &Validators{wanted: wanted, seed: maphash.MakeSeed(), of: map[uint64]wire.Validator{}}
}

func (v *Validators) key(r *wire.Request) uint64 {
	return maphash.String(v.seed, r.Host) ^ maphash.String(v.seed, r.Target)*31
}

// learn keeps the validator of a 200.
func (v *Validators) learn(r *wire.Request, version *wire.Validator) {
	if version.Empty() || (v.wanted != nil && !v.wanted.Load()) {
		return
	}
	key := v.key(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.of) >= maxValidators {
		if _, known := v.of[key]; !known {
			for any := range v.of {
				delete(v.of, any)
				break
			}
		}
	}
	v.of[key] = *version
}

// recall puts the validator of a request's target into the request, where there is one.
func (v *Validators) recall(r *wire.Request) {
	key := v.key(r)
	v.mu.Lock()
	version, known := v.of[key]
	v.mu.Unlock()
	if known {
		r.Revalidate(version)
	}
}
