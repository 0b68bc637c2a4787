package eventloop

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/target"
)

// dialer begins connections to one address. It is for one thread: connecting writes into the address.
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
