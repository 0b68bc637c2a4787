package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"
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
				t.Fatal(r.told())
			}
		}
	})
}
