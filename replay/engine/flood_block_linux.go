package engine

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
)

// block lets a goroutine that may block write the rest of a request and read its answer.
func (l *floodLoop) block(c *floodConn, rest []byte) {
	c.state = away
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, c.fd, nil)
	_ = unix.SetNonblock(c.fd, false)
	left := time.Duration(l.session.DeadlineNS(c.shot) - l.now())
	timeout := unix.NsecToTimeval(max(left, time.Millisecond).Nanoseconds())
	_ = unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	_ = unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout)
	go func() {
		done := completion{c: c}
		source := &blockingSource{fd: c.fd, shot: c.shot, now: l.now}
		if done.err = source.writeAll(rest); done.err == nil {
			done.resp, done.err = c.rd.Finish(source, c.shot.Method == "HEAD")
		}
		done.now = l.now()
		l.mu.Lock()
		l.back = append(l.back, done)
		l.mu.Unlock()
		_, _ = unix.Write(l.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}()
}

// takeBack goes on with connections that were away.
func (l *floodLoop) takeBack() {
	var drained [8]byte
	_, _ = unix.Read(l.event, drained[:])
	l.mu.Lock()
	back := l.back
	l.back = nil
	l.mu.Unlock()
	for _, b := range back {
		c := b.c
		c.state = waiting
		none := unix.Timeval{}
		_ = unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &none)
		_ = unix.SetNonblock(c.fd, true)
		err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)})
		if b.err == nil {
			b.err = err
		}
		l.answered(c, b.now, b.resp, b.err)
	}
}

// blockingSource reads and writes a file descriptor that blocks, with the kernel's own time-outs.
type blockingSource struct {
	fd   int
	shot *exchange.Shot
	now  func() int64
}

func (b *blockingSource) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(b.fd, p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, os.ErrDeadlineExceeded
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		if b.shot.FirstNS == 0 {
			b.shot.FirstNS = b.now()
		}
		return n, nil
	}
}

func (b *blockingSource) writeAll(p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(b.fd, p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return os.ErrDeadlineExceeded
		case err != nil:
			return err
		}
		p = p[n:]
	}
	return nil
}
