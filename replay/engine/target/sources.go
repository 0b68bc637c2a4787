package target

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Sources are the addresses of this machine from which connections are opened. One address has no more than the ports
// of net.ipv4.ip_local_port_range to a server: 28,232 by default.
type Sources struct {
	prefixes []netip.Prefix
	total    uint32 // addresses in all prefixes together
}

// ParseSources reads addresses and prefixes. The error names all that are wrong.
func ParseSources(texts []string) (Sources, error) {
	var s Sources
	var wrong []error
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			var address netip.Addr
			if address, err = netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
				prefix = netip.PrefixFrom(address, address.BitLen())
			}
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--source-address %q is neither an address nor a prefix: write 10.0.0.5, or 10.0.0.0/28", text))
			continue
		}
		s.prefixes = append(s.prefixes, prefix)
		s.total += size(prefix)
	}
	return s, errors.Join(wrong...)
}

// Len returns how many addresses there are; 0: the system chooses one.
func (s Sources) Len() int { return int(s.total) }

// size returns how many addresses of a prefix are used: all but the first and the last where there are more than two,
// which are the network's own.
func size(p netip.Prefix) uint32 {
	bits := hostBits(p)
	if bits < 2 {
		return 1 << bits
	}
	return 1<<bits - 2
}

// hostBits returns by how many bits the addresses of a prefix differ, 16 at most.
func hostBits(p netip.Prefix) int { return min(p.Addr().BitLen()-p.Bits(), 16) }

// Of returns the address of a client: the same at each connection. It is not valid where none was given.
func (s Sources) Of(client uint32) netip.Addr {
	if s.total == 0 {
		return netip.Addr{}
	}
	n := client % s.total
	for _, p := range s.prefixes {
		if here := size(p); n >= here {
			n -= here
			continue
		}
		if hostBits(p) >= 2 {
			n++
		}
		return plus(p.Masked().Addr(), n)
	}
	return netip.Addr{}
}

// plus returns the n-th address after one, n < 65,536.
func plus(a netip.Addr, n uint32) netip.Addr {
	b := a.AsSlice()
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		n += uint32(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	sum, _ := netip.AddrFromSlice(b)
	return sum
}
