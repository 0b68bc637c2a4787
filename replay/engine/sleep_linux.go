package engine

import (
	"runtime"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
)

// preciseSleeper sleeps in ppoll(2) on its own thread: Go's timers are rounded up to whole milliseconds when the
// process is idle (netpoll), which would be the greatest part of the lag.
type preciseSleeper struct {
	clock exchange.Clock
	event int // eventfd(2)
}

// How the scheduler treats the thread that sends: it works for microseconds at a time and should not wait for others to
// end their turns. Kernels from 6.12 on let a thread with a shorter slice go first when it wakes, and grant that to
// every user; the priority is for root alone.
const (
	sendersSliceNS = 100_000
	sendersNice    = -15
)

func hurry() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: sendersNice, Runtime: sendersSliceNS}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		attr.Nice = 0
		_ = unix.SchedSetAttr(0, &attr, 0)
	}
}

// newSleeper binds the calling goroutine to its thread.
func newSleeper(c exchange.Clock) sleeper {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return newTimerSleeper(c)
	}
	runtime.LockOSThread()
	// The kernel may otherwise delay a wake-up by 50 µs to join it with others.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	hurry()
	return &preciseSleeper{clock: c, event: fd}
}

func (s *preciseSleeper) until(ns int64) {
	for {
		left := ns - s.clock.Now()
		if left <= 0 {
			return
		}
		timeout := unix.NsecToTimespec(left)
		n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(s.event), Events: unix.POLLIN}}, &timeout, nil)
		if n > 0 && err == nil {
			var drained [8]byte
			_, _ = unix.Read(s.event, drained[:])
			return
		}
	}
}

func (s *preciseSleeper) wake() {
	_, _ = unix.Write(s.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (s *preciseSleeper) close() {
	_ = unix.Close(s.event)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the default again
	runtime.UnlockOSThread()
}
