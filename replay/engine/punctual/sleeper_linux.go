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
