package run

import (
	"fmt"
	"syscall"
)

// spareFiles are the open files that are not connections: records, logs, files of libraries.
const spareFiles = 64

// maxOpenFiles returns how many files the process may have open; Go raises its soft limit to the hard one at start.
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
			return fmt.Errorf("%s %d needs that many open files, and the limit of this process is %d: raise it (ulimit -n, LimitNOFILE=)",
				n.flag, n.value, maxOpenFiles())
		}
	}
	return nil
}

// maxConnections returns --max-connections, reduced to what the limit of open files allows.
func (c *Command) maxConnections() int {
	return max(1, min(c.MaxConnections, maxOpenFiles()-spareFiles))
}
