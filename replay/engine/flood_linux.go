package engine

import (
	"errors"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Without TLS and on Linux, a flood is sent by one thread per core with epoll(7): each waits for answers on its share of
// the connections and writes the next request as it reads the last answer. That costs half of what a goroutine per
// connection costs, and a benchmark should not measure its client. Rare cases (an answer larger than the buffer, a
// request larger than the socket's) go to a goroutine that may block, and come back.

const (
	floodTickMS   = 100 // how often time-outs are looked for
	floodMaxBytes = 64 << 10
	floodRestNS   = int64(100e6) // a connection that could not be opened is tried again after this
	floodEvents   = 256
)

// byEpoll sends over n connections until the sequence ends. It returns false where the system does not allow it.
func (f *flood) byEpoll(n int) bool {
	var loops []*floodLoop
	for range min(n, runtime.NumCPU()) {
		l, err := newFloodLoop(f)
		if err != nil {
			for _, made := range loops {
				made.close()
			}
			return false
		}
		loops = append(loops, l)
	}
	var all sync.WaitGroup
	for i, l := range loops {
		share := n / len(loops)
		if i < n%len(loops) {
			share++
		}
		all.Add(1)
		go func() {
			defer all.Done()
			defer l.close()
			l.run(share)
		}()
	}
	all.Wait()
	return true
}

// floodLoop is one thread's share of a flood.
type floodLoop struct {
	f       *flood
	session *exchange.Session
	to      unix.Sockaddr
	family  int
	epoll   int
	event   int // eventfd(2): a connection came back from a goroutine
	conns   []*floodConn
	live    int // connections that have not ended
	stock   []*exchange.Shot
	over    bool // nothing more is to be sent

	mu   sync.Mutex
	back []completion
}

// floodConn is one connection of a flood, and the request under way on it.
type floodConn struct {
	index  int
	fd     int // −1: none
	shot   *exchange.Shot
	served int
	rd     *wire.ResponseReader
	out    []byte
	state  floodState
	restNS int64 // until when it rests
}

type floodState uint8

const (
	resting    floodState = iota // after a failure to connect
	connecting                   // waits to become writable
	waiting                      // for an answer
	away                         // with a goroutine that may block
	ended                        // nothing more to send
)

// completion is the result of a goroutine that may block.
type completion struct {
	c    *floodConn
	now  int64
	resp wire.Response
	err  error
}

// wakeIndex marks the eventfd among the events, where others have the index of their connection.
const wakeIndex = -1

func newFloodLoop(f *flood) (*floodLoop, error) {
	to, family, err := socketAddress(f.e.session.Target.Addresses[0])
	if err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: wakeIndex})
	}
	if err != nil {
		_ = unix.Close(epoll)
		return nil, err
	}
	return &floodLoop{f: f, session: f.e.session, to: to, family: family, epoll: epoll, event: event}, nil
}

func (l *floodLoop) close() {
	for _, c := range l.conns {
		c.hangUp()
	}
	_ = unix.Close(l.event)
	_ = unix.Close(l.epoll)
}

// run sends over n connections until each of them has nothing more to send.
func (l *floodLoop) run(n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.live = n
	for i := range n {
		c := &floodConn{index: i, fd: -1, rd: wire.NewResponseReader(nil)}
		l.conns = append(l.conns, c)
		l.next(c, l.now())
	}
	events := make([]unix.EpollEvent, floodEvents)
	tended := l.now()
	for l.live > 0 {
		k, err := unix.EpollWait(l.epoll, events, floodTickMS)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, ev := range events[:max(k, 0)] {
			if ev.Fd == wakeIndex {
				l.takeBack()
				continue
			}
			switch c := l.conns[ev.Fd]; c.state {
			case connecting:
				l.connected(c)
			case waiting:
				l.readable(c)
			}
		}
		if now := l.now(); now-tended > floodTickMS*1e6 {
			tended = now
			l.tend(now)
		}
	}
}

func (l *floodLoop) now() int64 { return l.f.e.session.Clock.Now() }

// take returns the next request; nil when there is none, or the run is over. It looks only now and then for a stop.
func (l *floodLoop) take(now int64) *exchange.Shot {
	if len(l.stock) == 0 || l.over {
		l.over = l.over || l.f.over(now)
		if l.over {
			l.f.leave(len(l.stock))
			l.stock = nil
			return nil
		}
		if l.stock = l.f.takeSome(); len(l.stock) == 0 {
			return nil
		}
	}
	s := l.stock[0]
	l.stock[0] = nil
	l.stock = l.stock[1:]
	s.DueNS, s.StartNS = now, now
	return s
}

// next begins the next request on a connection; without one the connection ends.
func (l *floodLoop) next(c *floodConn, now int64) {
	s := l.take(now)
	if s == nil {
		c.hangUp()
		c.state = ended
		l.live--
		return
	}
	l.session.Prepare(s)
	c.shot = s
	l.begin(c)
}

// begin sends the connection's request, on a fresh connection where it needs one.
func (l *floodLoop) begin(c *floodConn) {
	if c.fd >= 0 && c.shot.Proto == wire.HTTP10 {
		c.hangUp()
	}
	if c.fd < 0 {
		l.connect(c)
		return
	}
	c.shot.Flags |= record.Reused
	l.send(c)
}

func (l *floodLoop) send(c *floodConn) {
	c.state = waiting
	c.served++
	c.rd.Reset()
	c.out = c.shot.AppendHTTP1(c.out[:0], l.session.Target.Host, l.session.Headers)
	n, err := unix.Write(c.fd, c.out)
	switch {
	case err == unix.EAGAIN || (err == nil && n < len(c.out)):
		l.block(c, c.out[max(n, 0):])
	case err != nil:
		l.broken(c, err)
	}
}

// readable takes what has come, and goes on when it is a whole answer.
func (l *floodLoop) readable(c *floodConn) {
	room := c.rd.Space(floodMaxBytes)
	if room == nil {
		l.block(c, nil)
		return
	}
	n, err := unix.Read(c.fd, room)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		l.broken(c, err)
		return
	case n == 0:
		l.broken(c, wire.ErrClosedEarly)
		return
	}
	now := l.now()
	if c.shot.FirstNS == 0 {
		c.shot.FirstNS = now
	}
	resp, err := c.rd.Take(n, c.shot.Method == "HEAD")
	if err == wire.ErrNotYet {
		return
	}
	l.answered(c, now, resp, err)
}

// broken deals with a connection that ended. What had come may be a whole answer even so.
func (l *floodLoop) broken(c *floodConn, err error) {
	s := c.shot
	if s.FirstNS == 0 {
		c.hangUp()
		if s.IsStale(c.served) {
			s.Retried = true
			s.Flags &^= record.Reused
			l.session.Recorder.Retried()
			l.connect(c)
			return
		}
		l.failed(c, wire.Response{}, err)
		return
	}
	resp, err := c.rd.Finish(endsWith{err}, s.Method == "HEAD")
	l.answered(c, l.now(), resp, err)
}

// endsWith is the source of a reader whose connection has ended.
type endsWith struct{ err error }

func (e endsWith) Read([]byte) (int, error) {
	if errors.Is(e.err, wire.ErrClosedEarly) {
		return 0, io.EOF
	}
	return 0, e.err
}

// answered records an answer and goes on with the next request.
func (l *floodLoop) answered(c *floodConn, now int64, resp wire.Response, err error) {
	s := c.shot
	if err != nil {
		c.hangUp()
		l.failed(c, resp, err)
		return
	}
	l.session.Answered(s, resp.Status, &resp.Version)
	l.session.Record(s, now, resp.Status, resp.Bytes, record.None)
	if !resp.KeepAlive || s.Proto == wire.HTTP10 {
		c.hangUp()
	}
	l.next(c, now)
}

func (l *floodLoop) failed(c *floodConn, resp wire.Response, err error) {
	now := l.now()
	l.session.Record(c.shot, now, resp.Status, resp.Bytes, exchange.KindOf(err))
	l.next(c, now)
}

// tend gives up requests that have taken too long, wakes connections that rest, and leaves at once when asked to.
func (l *floodLoop) tend(now int64) {
	abort := l.session.Abort.Err() != nil
	l.over = l.over || l.f.over(now)
	for _, c := range l.conns {
		switch {
		case c.state == resting && (now >= c.restNS || l.over):
			l.next(c, now)
		case c.state == away && abort:
			_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
		case (c.state == waiting || c.state == connecting) && (abort || l.session.Expired(c.shot, now)):
			c.hangUp()
			l.failed(c, wire.Response{}, os.ErrDeadlineExceeded)
		}
	}
}

// hangUp closes the connection.
func (c *floodConn) hangUp() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
}
