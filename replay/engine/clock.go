package engine

import "time"

// clock tells nanoseconds since the start of the run. It is monotonic: the wall clock may be set meanwhile.
type clock struct{ t0 time.Time }

func (c clock) now() int64 { return int64(time.Since(c.t0)) }

// at gives an instant of the run as a time for deadlines.
func (c clock) at(ns int64) time.Time { return c.t0.Add(time.Duration(ns)) }

// sleeper waits for instants of the run, exactly, for one goroutine. Others may wake it early.
type sleeper interface {
	// until returns at the instant, or when woken.
	until(ns int64)
	// wake ends a sleep, or the next one if nobody sleeps.
	wake()
	close()
}
