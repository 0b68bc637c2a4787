// Package eventloop drives a connection pool over plain TCP with epoll(7): one thread waits for what is due and for what
// its sockets have, and does both itself. A request costs two system calls and a share of a third, and no switch from
// one goroutine to another.
package eventloop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/punctual"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
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
	pool   *exchange.ConnectionPool
	clock  exchange.Clock
	state  *exchange.RunState
	dialer dialer

	poll       *poller
	sockets    []*socket // by slot; nil where free
	vacant     []int32
	unread     []*socket // that had more to read than was read at once
	failed     []failure
	generation int32
	in, out    []byte
	events     []unix.EpollEvent

	thread  atomic.Int64 // its number; 0: it does not run yet
	sentNS  int64        // when a request was sent last
	awokeNS int64        // when the last wait ended
	busy    float64      // the share of its time that the loop was at work of late, 0 to 1
}

// failure is reported to the pool once its own call has ended.
type failure struct {
	c   *exchange.Conn
	err error
}

// New returns a loop for the requests of a source.
func New(state *exchange.RunState, bounds exchange.Bounds, source exchange.AttemptSource) (*Loop, error) {
	l := &Loop{
		clock: state.Clock, state: state,
		in: make([]byte, readBytes), events: make([]unix.EpollEvent, eventsAtOnce),
	}
	l.pool = exchange.NewConnectionPool(state, bounds, source, l)
	var err error
	if l.dialer, err = newDialer(state.Target); err != nil {
		return nil, err
	}
	if l.poll, err = newPoller(); err != nil {
		return nil, err
	}
	return l, nil
}

// Wake makes the loop look at its source again. Any goroutine may call it, also after the run.
func (l *Loop) Wake() { l.poll.wake() }

// Unsent returns how many requests were submitted and not sent, since the loop was stopped.
func (l *Loop) Unsent() uint64 { return l.pool.Unsent() }

// Run sends what the source has until that has ended and all answers are there. When stop ends nothing more is sent; when
// the Abort of the run does, nothing more is waited for.
func (l *Loop) Run(stop context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.thread.Store(int64(unix.Gettid()))
	if !l.state.ClosedLoop {
		nice, restore := punctual.PrioritizeThread(l.state.Target.Local)
		defer restore()
		l.state.Nice.Store(int64(nice))
	}
	defer l.close()
	defer context.AfterFunc(stop, l.Wake)()
	defer context.AfterFunc(l.state.Abort, l.Wake)()
	for {
		if stop.Err() != nil {
			l.pool.Stop()
		}
		if l.state.Abort.Err() != nil {
			l.pool.GiveUp(l.clock.Now())
		}
		again := l.turn()
		if l.pool.IsOver() {
			return
		}
		if len(l.unread) > 0 {
			again = 0
		}
		l.handleEvents(l.waitUntil(again))
		l.readUnread()
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
		again = l.pool.Turn(now)
		l.reportFailures()
		if again > now {
			break
		}
		l.sentNS = now
	}
	return again
}

// handleEvents deals with what the sockets have. After each, it sends what has become due meanwhile, or possible by an
// answer.
func (l *Loop) handleEvents(events []unix.EpollEvent) {
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
		l.handleEvent(s, ev.Events)
		l.reportFailures()
		l.pool.Turn(l.clock.Now())
		l.reportFailures()
	}
}

// readUnread reads what was left unread.
func (l *Loop) readUnread() {
	unread := l.unread
	l.unread = nil
	for _, s := range unread {
		if s.fd >= 0 {
			l.read(s, true)
			l.reportFailures()
		}
	}
}

// reportFailures passes on that connections could not even begin to open.
func (l *Loop) reportFailures() {
	for len(l.failed) > 0 {
		f := l.failed[0]
		l.failed = l.failed[1:]
		now := l.clock.Now()
		started := f.c.Link.(*socket).attempt.StartNS
		l.pool.OpenFailed(f.c, record.SaturatedUS(now-started), 0, f.err, now)
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

// waitUntil waits until there is something to do again, and returns what the sockets have.
//
// The busier the loop is, the longer it lets requests come together after the last one, so that a wake-up serves several:
// patienceNS at the limit of what one thread can do, a quarter of that at half of it.
func (l *Loop) waitUntil(again int64) []unix.EpollEvent {
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

// socket is a connection of the pool, and the request under way on it.
type socket struct {
	conn       *exchange.Conn
	attempt    *exchange.Attempt // nil while idle
	fd         int               // −1: closed
	slot       int32
	generation int32
	connecting bool
	unwritten  []byte
	parser     wire.ResponseParser
}

// Open begins to connect.
func (l *Loop) Open(c *exchange.Conn, attempt *exchange.Attempt) {
	s := &socket{conn: c, attempt: attempt, fd: -1, slot: -1, connecting: true, parser: wire.ResponseParser{Software: l.state.Software}}
	c.Link = s
	fd, err := l.dialer.dial(c.Client().Client)
	if err != nil {
		l.failed = append(l.failed, failure{c, dialError(err)})
		return
	}
	s.fd = fd
	l.assignSlot(s)
	if err = l.poll.add(fd, s.slot, s.generation); err != nil {
		l.failed = append(l.failed, failure{c, dialError(err)})
	}
}

func dialError(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

// assignSlot gives a socket a slot.
func (l *Loop) assignSlot(s *socket) {
	if n := len(l.vacant); n > 0 {
		s.slot = l.vacant[n-1]
		l.vacant = l.vacant[:n-1]
	} else {
		s.slot = int32(len(l.sockets))
		l.sockets = append(l.sockets, nil)
	}
	l.generation++
	s.generation = l.generation
	l.sockets[s.slot] = s
}

// handleEvent deals with an event of a socket, which comes once: what came with the connection is read, too.
func (l *Loop) handleEvent(s *socket, events uint32) {
	if s.connecting {
		l.connected(s)
	} else if len(s.unwritten) > 0 && events&unix.EPOLLOUT != 0 {
		l.write(s, s.unwritten)
	}
	if s.fd >= 0 && events&^unix.EPOLLOUT != 0 {
		l.read(s, events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	}
}

func (l *Loop) connected(s *socket) {
	code, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	now := l.clock.Now()
	connectUS := record.SaturatedUS(now - s.attempt.StartNS)
	if err != nil {
		l.pool.OpenFailed(s.conn, connectUS, 0, dialError(err), now)
		return
	}
	s.connecting = false
	l.pool.Opened(s.conn, false, connectUS, 0, now)
}

// Send writes a request.
func (l *Loop) Send(c *exchange.Conn, attempt *exchange.Attempt) {
	s := c.Link.(*socket)
	s.attempt = attempt
	s.parser.Begin(attempt.Method == "HEAD")
	if attempt.HasSession() {
		s.parser.KeepSession(attempt.ReadsPages())
	}
	head := attempt.Head
	if head == nil {
		l.out = attempt.AppendHTTP1(l.out[:0], l.state.Target.Host, l.state.Headers)
		head = l.out
	}
	l.write(s, head)
}

// write sends what the socket takes. The rest follows when it takes more.
func (l *Loop) write(s *socket, b []byte) {
	n, err := writeNow(s.fd, b)
	if err == unix.EAGAIN {
		n, err = 0, nil
	}
	if err != nil {
		// The server may have answered and closed without reading: what it said counts.
		s.unwritten = nil
		l.unread = append(l.unread, s)
		return
	}
	if n == len(b) {
		s.unwritten = nil
		return
	}
	s.unwritten = append([]byte(nil), b[n:]...)
}

// read takes what has come. Where the end may have come with it, it reads until there is nothing left; a read that
// fills less than its room is otherwise the last.
func (l *Loop) read(s *socket, toTheEnd bool) {
	for range readsAtOnce {
		n, err := readNow(s.fd, l.in)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil:
			l.pool.Closed(s.conn, err, l.clock.Now())
			return
		case n == 0:
			l.receiveEnd(s)
			return
		}
		if l.receive(s, l.in[:n]); s.fd < 0 || n < len(l.in) && !toTheEnd {
			return
		}
	}
	l.unread = append(l.unread, s)
}

// receive deals with bytes that have come. Those that nobody asked for end the connection.
func (l *Loop) receive(s *socket, b []byte) {
	attempt, now := s.attempt, l.clock.Now()
	if attempt == nil {
		l.pool.Closed(s.conn, wire.ErrBadResponse, now)
		return
	}
	if attempt.FirstNS == 0 {
		attempt.FirstNS = now
	}
	used, whole, err := s.parser.Feed(b)
	switch {
	case err != nil:
		l.pool.Closed(s.conn, err, now)
	case whole:
		if used < len(b) || len(s.unwritten) > 0 {
			s.parser.KeepAlive = false
		}
		s.attempt = nil
		l.pool.Answered(s.conn, attempt, &s.parser.Response, now)
	}
}

// receiveEnd deals with a connection that the server has closed.
func (l *Loop) receiveEnd(s *socket) {
	attempt, now := s.attempt, l.clock.Now()
	if attempt == nil || attempt.FirstNS == 0 || s.parser.End() != nil {
		l.pool.Closed(s.conn, wire.ErrClosedEarly, now)
		return
	}
	s.attempt = nil
	l.pool.Answered(s.conn, attempt, &s.parser.Response, now)
}

// Cancel is for connections with many requests at once, of which this loop has none.
func (l *Loop) Cancel(*exchange.Conn, *exchange.Attempt) {}

// Received returns what has come of an answer.
func (l *Loop) Received(c *exchange.Conn, attempt *exchange.Attempt) exchange.PartialAnswer {
	s := c.Link.(*socket)
	if s.attempt != attempt || s.connecting {
		return exchange.PartialAnswer{}
	}
	return exchange.PartialAnswer{Status: s.parser.Status, Bytes: s.parser.Bytes, Served: s.parser.Served, FirstNS: attempt.FirstNS}
}

// Close closes a connection. One on which nothing is under way is reset: an orderly end would keep its port busy for a
// minute (TIME_WAIT), and ten thousand users who come and go, or the next run, would run out of ports.
func (l *Loop) Close(c *exchange.Conn) {
	if s, ok := c.Link.(*socket); ok {
		l.hangUp(s)
	}
}

func (l *Loop) hangUp(s *socket) {
	if s.fd < 0 {
		return
	}
	if !s.connecting && s.attempt == nil {
		_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	_ = unix.Close(s.fd)
	s.fd = -1
	l.sockets[s.slot] = nil
	l.vacant = append(l.vacant, s.slot)
}

// dialer begins connections to one address. Not safe for concurrent use: connecting writes into the address.
type dialer struct {
	to      unix.Sockaddr
	family  int
	sources target.Sources
}

func newDialer(to *target.Target) (dialer, error) {
	address := to.Addresses[0]
	ap, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return dialer{}, err
	case ap.Addr().Zone() != "":
		return dialer{}, fmt.Errorf("%s has a zone", address)
	case ap.Addr().Is4():
		return dialer{socketAddress(ap), unix.AF_INET, to.Sources}, nil
	}
	return dialer{socketAddress(ap), unix.AF_INET6, to.Sources}, nil
}

// socketAddress returns an address in the kernel's form.
func socketAddress(ap netip.AddrPort) unix.Sockaddr {
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
}

// dial begins a connection of a client, and returns its socket.
func (d dialer) dial(client uint32) (fd int, err error) {
	fd, err = unix.Socket(d.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if from := d.sources.Of(client); from.IsValid() {
		// The port is chosen when the socket connects, so that addresses can share ports.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err = unix.Bind(fd, socketAddress(netip.AddrPortFrom(from, 0))); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
	}
	if err = unix.Connect(fd, d.to); err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
