// The port of a connection, chosen when it connects.

package target

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// portLater has the port of a bound socket chosen when it connects, so that addresses can share ports.
func portLater(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
}
