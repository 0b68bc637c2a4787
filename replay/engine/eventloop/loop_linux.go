// Package eventloop drives a life over plain TCP with epoll(7): one thread waits for what is due and for what its
// sockets have, and does both itself. A request costs two system calls and a share of a third, and no switch from one
// goroutine to another.
package eventloop

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/punctual"
	"plimsoll/replay/record"
)

// Supported reports whether this system has event loops.
const Supported = true

const (
	readBytes    = 64 << 10 // read at once
	readsAtOnce  = 16       // of one socket, before others have their turn
	turnsAtOnce  = 8        // requests sent before sockets are looked at
	eventsAtOnce = 256
)

// Loop is one thread's share of a run.
type Loop struct {
	life    *exchange.Life
	clock   exchange.Clock
	session *exchange.Session
	dialer  dialer

	poll       *poller
	sockets    []*socket // by slot; nil where free
	vacant     []int32
	hungry     []*socket // that had more to read than was read at once
	failed     []failure
	generation int32
	in, out    []byte
	events     []unix.EpollEvent

	thread  atomic.Int64 // its number; 0: it does not run yet
	sentNS  int64        // when a request was sent last
	awokeNS int64        // when the last wait ended
	busy    float64      // the share of its time that the loop was at work of late, 0 to 1
}

// failure is reported to the life once its own call has ended.
type failure struct {
	c   *exchange.Conn
	err error
}

// New returns a loop for the requests of a plan.
func New(session *exchange.Session, bounds exchange.Bounds, plan exchange.Plan) (*Loop, error) {
	l := &Loop{
		clock: session.Clock, session: session,
		in: make([]byte, readBytes), events: make([]unix.EpollEvent, eventsAtOnce),
	}
	l.life = exchange.NewLife(session, bounds, plan, l)
	var err error
	if l.dialer, err = newDialer(session.Target); err != nil {
		return nil, err
	}
	if l.poll, err = newPoller(); err != nil {
		return nil, err
	}
	return l, nil
}

// Wake makes the loop look at its plan again. Any goroutine may call it, also after the run.
func (l *Loop) Wake() { l.poll.wake() }

// Unsent returns how many requests were submitted and not sent, since the loop was stopped.
func (l *Loop) Unsent() uint64 { return l.life.Unsent() }

// Run sends what the plan has until that has ended and all answers are there. When stop ends nothing more is sent; when
// the session's Abort does, nothing more is waited for.
func (l *Loop) Run(stop context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.thread.Store(int64(unix.Gettid()))
	if !l.session.Unhurried {
		nice, restore := punctual.Thread(l.session.Target.Local)
		defer restore()
		l.session.Nice.Store(int64(nice))
	}
	defer l.close()
	defer context.AfterFunc(stop, l.Wake)()
	defer context.AfterFunc(l.session.Abort, l.Wake)()
	for {
		l.endings(stop)
		again := l.turn()
		if l.life.IsOver() {
			return
		}
		if len(l.hungry) > 0 {
			again = 0
		}
		l.take(l.rest(again))
		l.readOn()
	}
}

// ProcessorTime returns what the loop's thread has used so far.
func (l *Loop) ProcessorTime() time.Duration {
	// The clock of a thread of this process (clock_getcpuclockid(3), MAKE_THREAD_CPUCLOCK in the kernel).
	const perThread, scheduled = 4, 2
	var used unix.Timespec
	thread := l.thread.Load()
	if thread == 0 || unix.ClockGettime(int32(^thread<<3|perThread|scheduled), &used) != nil {
		return 0
	}
	return time.Duration(used.Nano())
}

// turn sends what is due, and returns when to look again.
func (l *Loop) turn() (again int64) {
	for range turnsAtOnce {
		now := l.clock.Now()
		again = l.life.Turn(now)
		l.tell()
		if again > now {
			break
		}
		l.sentNS = now
	}
	return again
}

// endings looks whether the run is to end.
func (l *Loop) endings(stop context.Context) {
	if stop.Err() != nil {
		l.life.Stop()
	}
	if l.session.Abort.Err() != nil {
		l.life.GiveUp(l.clock.Now())
	}
}

// take deals with what the sockets have. After each, it sends what has become due meanwhile, or possible by an answer.
func (l *Loop) take(events []unix.EpollEvent) {
	for i := range events {
		ev := &events[i]
		if ev.Fd < 0 {
			l.poll.drain(ev.Fd)
			continue
		}
		s := l.sockets[ev.Fd]
		if s == nil || s.generation != ev.Pad {
			continue // closed by an event before this one
		}
		l.ready(s, ev.Events)
		l.tell()
		l.life.Turn(l.clock.Now())
		l.tell()
	}
}

// readOn reads what was left unread.
func (l *Loop) readOn() {
	hungry := l.hungry
	l.hungry = nil
	for _, s := range hungry {
		if s.fd >= 0 {
			l.read(s, true)
			l.tell()
		}
	}
}

// tell passes on that connections could not even begin to open.
func (l *Loop) tell() {
	for len(l.failed) > 0 {
		f := l.failed[0]
		l.failed = l.failed[1:]
		now := l.clock.Now()
		started := f.c.Link.(*socket).shot.StartNS
		l.life.OpenFailed(f.c, record.SaturatedUS(now-started), 0, f.err, now)
	}
}

func (l *Loop) close() {
	for _, s := range l.sockets {
		if s != nil {
			l.hangUp(s)
		}
	}
	l.poll.close()
}

// rest waits until there is something to do again, and returns what the sockets have.
//
// The busier the loop is, the longer it lets requests come together after the last one, so that a wake-up serves several:
// patienceNS at the limit of what one thread can do, a quarter of that at half of it.
func (l *Loop) rest(again int64) []unix.EpollEvent {
	asleep := l.clock.Now()
	if again > asleep {
		again = max(again, l.sentNS+int64(patienceNS*l.busy*l.busy))
	}
	events := l.poll.wait(l.events, again, asleep)
	awake := l.clock.Now()
	if all := float64(awake - l.awokeNS); all > 0 {
		worked := float64(asleep-l.awokeNS) / all
		l.busy += (worked - l.busy) * min(1, all/ofLateNS)
	}
	l.awokeNS = awake
	return events
}

const (
	patienceNS = 400e3
	ofLateNS   = 1e6
)
