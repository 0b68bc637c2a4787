package run

// How many connections a run may have: open files and ports allow so many.

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/record"
)

const (
	// spareFiles are the open files that are not connections: records, logs, files of libraries.
	spareFiles = 64
	// fewestConnections are what a replay needs at least, unless it is told to do with fewer: under them, visitors would
	// wait for one another where they never did.
	fewestConnections = 256
)

// maxOpenFiles returns how many files the process may have open: the hard limit, to which Go raises the soft one at
// start.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int(limit.Cur)
}

// connectionsFlag returns the flag that says how many connections the run may need, how many these are, and how many of
// them it cannot do without.
func (c *Settings) connectionsFlag() (flag string, most, least int) {
	switch {
	case c.Users > 0:
		return "--users", c.Users, c.Users
	case c.Speed == "max":
		return "--connections", c.Connections, c.Connections
	}
	return "--max-connections", c.MaxConnections, min(c.MaxConnections, fewestConnections)
}

// checkFiles refuses a limit of open files that leaves too few connections.
func (c *Settings) checkFiles() error {
	flag, most, least := c.connectionsFlag()
	if least <= maxOpenFiles()-spareFiles {
		return nil
	}
	return errors.New(tooFewFiles(flag, most))
}

// filesWarning returns what to say before a run of so many requests (0: unknown) that may need more connections than
// the limit of open files allows; "" if it cannot.
func (c *Settings) filesWarning(requests uint64) string {
	flag, most, _ := c.connectionsFlag()
	if most <= maxOpenFiles()-spareFiles || requests > 0 && requests <= uint64(c.maxConnections()) {
		return ""
	}
	return fmt.Sprintf("%s: past %d connections, requests will wait", tooFewFiles(flag, most), c.maxConnections())
}

// waitedForFiles returns why the generator was the limit of a run, most requests of which waited while the limit of open
// files held connections back; "" if that was not so.
func (c *Settings) waitedForFiles(n record.Requests) string {
	flag, most, _ := c.connectionsFlag()
	waited := n.Queued - n.ClientQueued
	if most <= maxOpenFiles()-spareFiles || 2*waited <= n.Sent-n.Warmup {
		return ""
	}
	return fmt.Sprintf("%d of %d requests waited for a connection, while the generator could open only %d: %s",
		waited, n.Sent-n.Warmup, c.maxConnections(), tooFewFiles(flag, most))
}

// tooFewFiles says that the limit of open files does not allow what a flag asks for, and what to do.
func tooFewFiles(flag string, connections int) string {
	need := connections + spareFiles
	return fmt.Sprintf("%s %d needs %d open files, and this process may have %d; raise the limit (ulimit -n %d in the shell, LimitNOFILE=%d in a systemd unit) or give fewer",
		flag, connections, need, maxOpenFiles(), need, need)
}

// maxConnections returns --max-connections, reduced to what the limit of open files allows.
func (c *Settings) maxConnections() int {
	return max(1, min(c.MaxConnections, maxOpenFiles()-spareFiles))
}

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

// checkPorts refuses source addresses that have too few ports for the connections that the run cannot do without. To the
// addresses that it asks for one is added, since clients are not spread evenly over them at each instant.
func (c *Settings) checkPorts(from target.Sources) error {
	flag, _, least := c.connectionsFlag()
	each := portsOfAddress()
	if each == 0 || least <= each*max(1, from.Len()) {
		return nil
	}
	have := "without --source-address there is one"
	if from.Len() > 0 {
		have = fmt.Sprintf("--source-address gives %d", from.Len())
	}
	return fmt.Errorf("%s %d needs as many ports, of which an address has %d to one server (net.ipv4.ip_local_port_range), and %s; give %d addresses of this machine or more (--source-address 10.0.0.0/28; on loopback 127.0.0.0/16), widen the range, or give fewer",
		flag, least, each, have, (least+each-1)/each+1)
}
