package engine

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// socketAddress returns an address in the kernel's form. It is for one thread: connecting writes into it.
func socketAddress(address string) (to unix.Sockaddr, family int, err error) {
	ap, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return nil, 0, err
	case ap.Addr().Zone() != "":
		return nil, 0, fmt.Errorf("%s has a zone", address)
	case ap.Addr().Is4():
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}, unix.AF_INET, nil
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}, unix.AF_INET6, nil
}

func (l *floodLoop) connect(c *floodConn) {
	fd, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.unconnected(c, err)
		return
	}
	c.fd, c.served, c.state = fd, 0, connecting
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err = unix.Connect(fd, l.to); err == unix.EINPROGRESS {
		err = nil
	}
	if err == nil {
		err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(c.index)})
	}
	if err != nil {
		l.unconnected(c, err)
	}
}

// unconnected records that no connection came about, and lets the next request wait a little.
func (l *floodLoop) unconnected(c *floodConn, err error) {
	s, now := c.shot, l.now()
	s.ConnectUS = record.SaturatedUS(now - s.StartNS)
	err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	l.session.Health.ConnectFailed(err)
	l.session.Record(s, now, 0, 0, exchange.KindOf(err))
	c.hangUp()
	c.shot, c.state, c.restNS = nil, resting, now+floodRestNS
}

func (l *floodLoop) connected(c *floodConn) {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err == nil {
		err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)})
	}
	if err != nil {
		l.unconnected(c, err)
		return
	}
	c.shot.ConnectUS = record.SaturatedUS(l.now() - c.shot.StartNS)
	l.send(c)
}
