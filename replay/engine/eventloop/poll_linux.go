// What a loop waits for, and reads and writes that never block.

package eventloop

import (
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Slots of events that are not sockets.
const (
	wakeSlot  = -1
	timerSlot = -2
)

// poller waits for sockets, for an instant, and to be woken.
type poller struct {
	epoll   int
	timer   int // timerfd(2)
	armedNS int64
	event   *event
}

// event is an eventfd(2) that may be written to when the loop has ended.
type event struct {
	mu sync.Mutex
	fd int // −1: closed
}

func newPoller() (*poller, error) {
	p := &poller{epoll: -1, timer: -1, armedNS: unarmed, event: &event{fd: -1}}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		p.event.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err == nil {
		p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	}
	if err == nil {
		err = p.watch(p.event.fd, unix.EPOLLIN, wakeSlot, 0)
	}
	if err == nil {
		err = p.watch(p.timer, unix.EPOLLIN|unix.EPOLLET, timerSlot, 0)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poller) watch(fd int, events uint32, slot, generation int32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: slot, Pad: generation})
}

// add watches a socket for as long as it is open. Edges are enough: a loop reads until there is nothing left.
func (p *poller) add(fd int, slot, generation int32) error {
	return p.watch(fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET, slot, generation)
}

// Bounds of a wait.
const (
	unarmed = int64(-1) << 62 // no instant of a run
	longest = int64(time.Hour)
	// A wait of less than this keeps its processor from Go's scheduler, which might not give it back in time. Who wants
	// all processors, to collect garbage, waits for no longer than that.
	keepNS = int64(time.Millisecond)
)

// wait returns what happened until an instant of the run, or a little before; now is another. The kernel's timer is set
// where it would not end the wait in time: on virtual machines setting it costs more than the rest of a short wait.
func (p *poller) wait(events []unix.EpollEvent, untilNS, now int64) []unix.EpollEvent {
	forEver, left := ^uintptr(0), untilNS-now
	call, timeout := syscall.RawSyscall6, forEver
	switch {
	case left <= 0:
		timeout = 0
	case left > keepNS:
		call = syscall.Syscall6
	}
	if left > 0 && (p.armedNS > untilNS || p.armedNS <= now) {
		p.armedNS = untilNS
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(min(left, longest))}
		_, _, _ = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(p.timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	}
	n, _, code := call(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), timeout, 0, 0)
	if code != 0 {
		return nil
	}
	return events[:n]
}

func (p *poller) wake() {
	p.event.mu.Lock()
	defer p.event.mu.Unlock()
	if p.event.fd >= 0 {
		_, _ = unix.Write(p.event.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// drain makes ready for the next event of a slot that is not a socket's.
func (p *poller) drain(slot int32) {
	if slot == timerSlot {
		p.armedNS = unarmed
		return
	}
	var counter [8]byte
	_, _ = unix.Read(p.event.fd, counter[:])
}

func (p *poller) close() {
	p.event.mu.Lock()
	defer p.event.mu.Unlock()
	for _, fd := range []int{p.event.fd, p.timer, p.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	p.event.fd = -1
}

// Reads and writes never block, and are made without telling Go's scheduler, which would cost more than they do.

func readNow(fd int, b []byte) (int, error) { return inOut(unix.SYS_READ, fd, b) }

func writeNow(fd int, b []byte) (int, error) { return inOut(unix.SYS_WRITE, fd, b) }

func inOut(call uintptr, fd int, b []byte) (int, error) {
	n, _, code := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if code != 0 {
		return 0, code
	}
	return int(n), nil
}
