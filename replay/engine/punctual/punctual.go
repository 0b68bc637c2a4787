// Package punctual is what it takes to send on time: how Go's runtime and the sending threads are set up, and a sleep
// that ends when it should.
package punctual

import (
	"runtime"
	"runtime/debug"
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

// How much garbage there may be for what is in use, in percent, until it is collected.
const (
	// Where the heap is small and of constant size, as in the open loop, collecting it a third as often costs little and
	// makes fewer requests late.
	RareCollections = 300
	// Where it grows with the number of users, it should not grow by three times what they need.
	SmallHeap = 100
)

// SpareThreads is how many threads more than cores there should be where requests are due at instants: the thread that
// sends must not wait until one that reads the log pauses, and the system's scheduler, which knows priorities, should
// choose between them, not Go's.
const SpareThreads = 2

// TuneRuntime sets Go's runtime up for sending on time, with so many threads more than cores, until it is restored.
func TuneRuntime(cores, spare, garbagePercent int) (restore func()) {
	threads := runtime.GOMAXPROCS(cores + spare)
	percent := debug.SetGCPercent(garbagePercent)
	return func() {
		runtime.GOMAXPROCS(threads)
		debug.SetGCPercent(percent)
	}
}

// MeasureLateness returns by how many nanoseconds a thread that is set up as those that send woke too late: for so long, at
// instants that are so far apart. One that it overslept counts by how late it is then, as a request would.
func MeasureLateness(lasts, apart time.Duration) []int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer TuneRuntime(runtime.NumCPU(), SpareThreads, RareCollections)()
	_, restore := PrioritizeThread(false)
	defer restore()
	begin := time.Now()
	now := func() int64 { return int64(time.Since(begin)) }
	sleeper := NewSleeper(now)
	defer sleeper.Close()
	late := make([]int64, 0, lasts/apart)
	for due := int64(apart); due <= int64(lasts); due += int64(apart) {
		sleeper.Until(due)
		late = append(late, now()-due)
	}
	return late
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
