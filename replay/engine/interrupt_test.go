package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll/replay/engine"
	"plimsoll/replay/engine/wire"
)

// The first interrupt lets what is in flight finish.
func TestFirstInterrupts(t *testing.T) {
	for _, row := range interrupted {
		onEach(t, row.says, http1and2, func(t *testing.T, r *ride) {
			row.interrupt(t, r)
			r.expect(t, row.want)
		})
	}
}

// What would have come after it is counted.
func TestInterruptsCountTheRest(t *testing.T) {
	for _, row := range interrupted {
		onEach(t, row.says, http1and2, func(t *testing.T, r *ride) {
			row.interrupt(t, r)
			if r.unsent != 4 {
				r.fail(t, "%d unsent, want 4", r.unsent)
			}
		})
	}
}

// cut is an answer with a mark, at which the first interrupt comes.
type cut struct {
	says string
	play play
	want string
}

var interrupted = []cut{
	{"before the answer", play{mark, breath, good}, "200 2"},
	{"after the head", play{answer(200, 2), mark, breath, body("ok", true)}, "200 2"},
	{"in the middle of a long body", play{answer(200, 16e6), long(1e4, false), mark, breath, long(16e6-1e4, true)}, "200 16000000"},
	{"when the server closes after it", play{answer(200, 9), mark, breath, body("half", false), hangUp}, "200 4 closed_early"},
}

// breath is long enough for an interrupt to be noticed.
var breath = pause(100 * time.Millisecond)

// interrupt sends five requests; the interrupt comes during the first.
func (c cut) interrupt(t *testing.T, r *ride) {
	r.run(t, server{script: always(c.play...), marked: r.stop}.start(t, r.driver), gets(5))
}

// Whenever the first interrupt comes, the run ends, and each request was sent or is counted as unsent.
func TestFirstInterruptAtAnyInstant(t *testing.T) {
	const each = 300
	onEach(t, "of three clients", http1and2, func(t *testing.T, r *ride) {
		base := server{script: fine}.start(t, r.driver)
		for range 10 {
			r := newRide(t, r.driver, r.loop)
			r.gap = 20 * time.Microsecond
			time.AfterFunc(rand.N(8*time.Millisecond), r.stop)
			r.run(t, base, gets(each), gets(each), gets(each))
			if got := len(r.records) + int(r.unsent); got != 3*each || r.hung != "" {
				t.Fatalf("%d recorded + %d unsent of %d %s", len(r.records), r.unsent, 3*each, r.hung)
			}
		}
	})
}

// A second one right after it ends the run even if nothing has come about yet.
func TestSecondInterruptAtAnyInstant(t *testing.T) {
	onEach(t, "of three clients", http1and2, func(t *testing.T, r *ride) {
		base := server{script: fine}.start(t, r.driver)
		for range 10 {
			r := newRide(t, r.driver, r.loop)
			r.gap = 20 * time.Microsecond
			time.AfterFunc(rand.N(8*time.Millisecond), func() {
				r.stop()
				r.abort()
			})
			if r.run(t, base, gets(300), gets(300), gets(300)); r.hung != "" {
				t.Fatal(r.describe())
			}
		}
	})
}

// loopsOf are the three loops over a sequence of requests.
var loopsOf = map[string]func(e *engine.Engine, stop context.Context, seq engine.Schedule) engine.Outcome{
	"open": func(e *engine.Engine, stop context.Context, seq engine.Schedule) engine.Outcome {
		return e.Open(stop, seq)
	},
	"max": func(e *engine.Engine, stop context.Context, seq engine.Schedule) engine.Outcome {
		return e.Max(stop, seq, 2, time.Minute)
	},
	"users": func(e *engine.Engine, stop context.Context, seq engine.Schedule) engine.Outcome {
		visits := func(yield func(engine.Visit) bool) {
			for s := range seq {
				if !yield(engine.Visit{s}) {
					return
				}
			}
		}
		return e.Users(stop, visits, 2, 0, time.Minute, 1)
	},
}

// A schedule without end, and one that does not get on, hold no interrupt up. How much of them is unsent is not known.
func TestAnInterruptWaitsForNoSchedule(t *testing.T) {
	for name, run := range loopsOf {
		for says, ends := range map[string]bool{"without end": false, "that does not get on": true} {
			r := newRide(t, goroutines, loop{})
			base := server{script: fine}.start(t, r.driver)
			r.loop.run = func(e *engine.Engine, r *ride) engine.Outcome {
				r.asks = [][]wire.Request{gets(1)}
				over := make(chan struct{})
				defer close(over)
				time.AfterFunc(50*time.Millisecond, r.stop)
				outcome := run(e, r.stopped, func(yield func(engine.Entry) bool) {
					if ends {
						<-over
						return
					}
					for yield(engine.Entry{Value: r.request(0, 0)}) {
					}
				})
				if !outcome.Uncounted && (ends || name != "users") { // users have what they began
					t.Errorf("%s, a schedule %s: its rest is counted as %d", name, says, outcome.Unsent)
				}
				return outcome
			}
			if r.run(t, base, gets(1)); r.hung != "" {
				t.Errorf("%s, a schedule %s: it %s", name, says, r.hung)
			}
		}
	}
}
