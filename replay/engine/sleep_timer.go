package engine

import "time"

// timerSleeper sleeps on Go's timers: the portable way.
type timerSleeper struct {
	clock clock
	woken chan struct{}
}

func newTimerSleeper(c clock) sleeper {
	return &timerSleeper{clock: c, woken: make(chan struct{}, 1)}
}

func (s *timerSleeper) until(ns int64) {
	left := ns - s.clock.now()
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
