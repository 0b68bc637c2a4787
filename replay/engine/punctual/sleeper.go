package punctual

import (
	"sync"
	"time"
)

// Sleeper waits for instants of a run, exactly, for one goroutine. Others may wake it early.
type Sleeper interface {
	// Until returns at the instant, or when woken.
	Until(ns int64)
	// Wake ends a sleep, or the next one if nobody sleeps. It may be called after Close.
	Wake()
	Close()
}

// timerSleeper sleeps on Go's timers: the portable way.
type timerSleeper struct {
	now   func() int64
	woken chan struct{}
}

func newTimerSleeper(now func() int64) Sleeper {
	return &timerSleeper{now: now, woken: make(chan struct{}, 1)}
}

func (s *timerSleeper) Until(ns int64) {
	timer := time.NewTimer(time.Duration(ns - s.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.woken:
	}
}

func (s *timerSleeper) Wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *timerSleeper) Close() {}

// once guards what is used until it is closed.
type once struct {
	mu     sync.Mutex
	closed bool
}

// do does something unless that is closed.
func (o *once) do(what func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		what()
	}
}

// close does something, and nothing after it.
func (o *once) close(what func()) {
	o.do(func() {
		what()
		o.closed = true
	})
}
