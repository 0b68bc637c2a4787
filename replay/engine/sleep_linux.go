package engine

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// preciseSleeper sleeps in ppoll(2) on a thread of its own: Go's timers are rounded up to whole milliseconds when the process is
// idle (netpoll), which would be the greatest part of the lag.
type preciseSleeper struct {
	clock clock
	event int // eventfd(2)
}

// sendersNice is the priority of the thread that sends at due instants.
const sendersNice = -15

// newSleeper binds the calling goroutine to its thread.
func newSleeper(c clock) sleeper {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return newTimerSleeper(c)
	}
	runtime.LockOSThread()
	// The kernel may otherwise delay a wake-up by 50 µs to join it with others.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	// Where it may (as root), the thread goes before others on its core: it works for microseconds at a time.
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), sendersNice)
	return &preciseSleeper{clock: c, event: fd}
}

func (s *preciseSleeper) until(ns int64) {
	for {
		left := ns - s.clock.now()
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
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 0)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the default again
	runtime.UnlockOSThread()
}
