package punctual

import "golang.org/x/sys/unix"

// How the scheduler treats the thread that sends: it works for microseconds at a time and should not wait for others to
// end their turns. Kernels from 6.12 on let a thread with a shorter slice go first when it wakes, and grant that to
// every user; the priority is for root alone.
const (
	sliceNS = 100_000
	nice    = -15
)

// Thread sets the calling thread up for sending on time: before all others where it is alone, like others where it is
// beside the server that it measures. It returns the priority that it got; restore undoes it.
func Thread(beside bool) (niceness int, restore func()) {
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
