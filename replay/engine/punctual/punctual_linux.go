// What Linux has for it: a sleep that ends on the microsecond, and priority for the thread that sends.

package punctual

import "golang.org/x/sys/unix"

// preciseSleeper sleeps in ppoll(2): Go's timers are rounded up to whole milliseconds when the process is idle
// (netpoll), which would be the greatest part of the lag.
type preciseSleeper struct {
	now   func() int64
	event int // eventfd(2)
	open  once
}

// NewSleeper returns a sleeper for a clock that counts nanoseconds.
func NewSleeper(now func() int64) Sleeper {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return newTimerSleeper(now)
	}
	return &preciseSleeper{now: now, event: fd}
}

func (s *preciseSleeper) Until(ns int64) {
	for {
		left := ns - s.now()
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

func (s *preciseSleeper) Wake() {
	s.open.do(func() { _, _ = unix.Write(s.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) })
}

func (s *preciseSleeper) Close() { s.open.close(func() { _ = unix.Close(s.event) }) }

// How the scheduler treats the thread that sends: it works for microseconds at a time and should not wait for others to
// end their turns. Kernels from 6.12 on let a thread with a shorter slice go first when it wakes, and grant that to
// every user; the priority is for root alone.
const (
	sliceNS = 100_000
	nice    = -15
)

// PrioritizeThread sets the calling thread up for sending on time: before all others where it is alone, like others
// where it is beside the server that it measures. It returns the priority that it got; restore undoes it.
func PrioritizeThread(beside bool) (niceness int, restore func()) {
	// The kernel may otherwise delay a wake-up by 50 µs to join it with others.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: nice, Runtime: sliceNS}
	if beside || unix.SchedSetAttr(0, &attr, 0) != nil {
		attr.Nice = 0
		_ = unix.SchedSetAttr(0, &attr, 0)
	}
	return int(attr.Nice), func() {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the default again
	}
}
