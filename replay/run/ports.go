package run

import (
	"errors"
	"fmt"
	"os"

	"plimsoll/replay/engine/target"
)

// portRangeFile has the first and the last port that Linux gives to connections, of IPv6 too.
const portRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"

// portsOfAddress returns how many connections one address may have to one server; 0: unknown.
func portsOfAddress() int {
	var first, last int
	text, err := os.ReadFile(portRangeFile)
	if err != nil {
		return 0
	}
	if _, err = fmt.Sscan(string(text), &first, &last); err != nil {
		return 0
	}
	return max(0, last-first+1)
}

// checkPorts refuses source addresses that have too few ports for the connections that the run cannot do without.
func (c *Command) checkPorts(from target.Sources) error {
	flag, _, least := c.connectionsFlag()
	if each := portsOfAddress(); each > 0 && least > each*max(1, from.Len()) {
		return errors.New(tooFewPorts(flag, least, each, from.Len()))
	}
	return nil
}

// tooFewPorts says that the source addresses do not have the ports for what a flag asks for, and what to do. To the
// addresses that it names one is added, since clients are not spread evenly over them at each instant.
func tooFewPorts(flag string, connections, each, addresses int) string {
	have := "without --source-address there is one"
	if addresses > 0 {
		have = fmt.Sprintf("--source-address gives %d", addresses)
	}
	enough := (connections+each-1)/each + 1
	return fmt.Sprintf("%s %d needs as many ports, of which an address has %d to one server (net.ipv4.ip_local_port_range), and %s; give %d addresses of this machine or more (--source-address 10.0.0.0/28; on loopback 127.0.0.0/16), widen the range, or give fewer",
		flag, connections, each, have, enough)
}
