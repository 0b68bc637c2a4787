// Does the target run on this machine?

package target

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// isLocal reports whether the server at the end of a connection runs on this machine: on loopback, on an address of its
// own, or in a container or a guest on one of its bridges.
func isLocal(from, to net.Addr) bool {
	own, ownOK := addressOf(from)
	server, serverOK := addressOf(to)
	switch {
	case !ownOK || !serverOK:
		return false
	case server.IsLoopback() || server == own:
		return true
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return false
	}
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			switch {
			case err != nil:
			case prefix.Addr().Unmap() == server:
				return true
			case prefix.Addr().Unmap() == own && prefix.Contains(server):
				return leadsToGuests("/", i.Name, server)
			}
		}
	}
	return false
}

func addressOf(a net.Addr) (netip.Addr, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	address := tcp.AddrPort().Addr().Unmap()
	return address, address.IsValid()
}

// leadsToGuests reports whether a neighbour on an interface is a container's or a guest's: the interface is the end of a
// pair (veth) or a guest's (tap), or a bridge that has the neighbour on such a port. Files are read below root.
func leadsToGuests(root, name string, neighbour netip.Addr) bool {
	folder := filepath.Join(root, "sys/class/net", name)
	ports, err := os.ReadDir(filepath.Join(folder, "brif"))
	if err != nil {
		return isGuests(folder)
	}
	physical := map[int64]bool{}
	for _, port := range ports {
		if !isGuests(filepath.Join(root, "sys/class/net", port.Name())) {
			physical[readNumber(filepath.Join(folder, "brif", port.Name(), "port_no"))] = true
		}
	}
	return len(physical) == 0 || !physical[portOf(root, folder, neighbour)]
}

// isGuests reports whether an interface is made of software and has another end on this machine.
func isGuests(folder string) bool {
	flags := readNumber(filepath.Join(folder, "tun_flags"))
	const tap = 2 // IFF_TAP, linux/if_tun.h
	if flags >= 0 {
		return flags&tap != 0
	}
	kind, _ := os.ReadFile(filepath.Join(folder, "uevent"))
	ends := readNumber(filepath.Join(folder, "iflink")) != readNumber(filepath.Join(folder, "ifindex"))
	_, err := os.Stat(filepath.Join(folder, "device"))
	return ends && err != nil && !strings.Contains(string(kind), "DEVTYPE=")
}

// portOf returns the number of a bridge's port behind which a neighbour was seen; 0 if unknown. The bridge's
// table has 16 bytes an entry, of which the first six are the hardware's address and the next is the port
// (struct __fdb_entry, linux/if_bridge.h).
func portOf(root, bridge string, neighbour netip.Addr) int64 {
	table, _ := os.ReadFile(filepath.Join(root, "proc/net/arp"))
	var hardware net.HardwareAddr
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == neighbour.String() {
			hardware, _ = net.ParseMAC(fields[3])
		}
	}
	const entryBytes = 16
	seen, _ := os.ReadFile(filepath.Join(bridge, "brforward"))
	for ; len(seen) >= entryBytes && len(hardware) > 0; seen = seen[entryBytes:] {
		if string(seen[:len(hardware)]) == string(hardware) {
			return int64(seen[len(hardware)])
		}
	}
	return 0
}

// readNumber reads a file that has one, decimal or with 0x; -1 where it has none.
func readNumber(path string) int64 {
	text, _ := os.ReadFile(path)
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 0, 64)
	if err != nil {
		return -1
	}
	return n
}
