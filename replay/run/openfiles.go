package run

import (
	"fmt"
	"syscall"
)

// spareFiles are those that are open besides connections: records, logs, the libraries'.
const spareFiles = 64

// maxOpenFiles is how many files the process may have open; Go raises its soft limit to the hard one at start.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int(limit.Cur)
}

// checkFiles refuses more connections than files may be open.
func (c *Command) checkFiles() error {
	for _, n := range []struct {
		flag  string
		value int
		set   bool
	}{
		{"--users", c.Users, c.Users > 0},
		{"--connections", c.Connections, c.Speed == "max"},
	} {
		if n.set && n.value > maxOpenFiles()-spareFiles {
			return fmt.Errorf("%s %d needs as many open files, and this process may have %d: raise the limit (ulimit -n, LimitNOFILE=)", n.flag, n.value, maxOpenFiles())
		}
	}
	return nil
}

// maxConnections is --max-connections, as far as the limit of open files lets it.
func (c *Command) maxConnections() int {
	return max(1, min(c.MaxConnections, maxOpenFiles()-spareFiles))
}
