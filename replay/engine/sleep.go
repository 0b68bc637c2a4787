package engine

import (
	"runtime"
	"runtime/debug"
	"time"

	"plimsoll/replay/engine/exchange"
)

// sleeper waits for instants of the run, exactly, for one goroutine. Others may wake it early.
type sleeper interface {
	// until returns at the instant, or when woken.
	until(ns int64)
	// wake ends a sleep, or the next one if nobody sleeps.
	wake()
	close()
}

// timerSleeper sleeps on Go's timers: the portable way.
type timerSleeper struct {
	clock exchange.Clock
	woken chan struct{}
}

func newTimerSleeper(c exchange.Clock) sleeper {
	return &timerSleeper{clock: c, woken: make(chan struct{}, 1)}
}

func (s *timerSleeper) until(ns int64) {
	left := ns - s.clock.Now()
	if left <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(left))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.woken:
	}
}

func (s *timerSleeper) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *timerSleeper) close() {}

// Punctual sets Go's runtime up for sending on time, until it is restored.
//
// The thread that sends must not wait until one that reads the log pauses: the system's scheduler, which knows
// priorities, should choose between them, not Go's. The heap is small and of constant size: collecting it a third as
// often costs little and makes fewer requests late.
func Punctual() (restore func()) {
	threads := runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	percent := debug.SetGCPercent(300)
	return func() {
		runtime.GOMAXPROCS(threads)
		debug.SetGCPercent(percent)
	}
}
