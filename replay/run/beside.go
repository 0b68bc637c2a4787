package run

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/replay/record"
)

// serverBeside is the server on this machine, as far as it can be seen: the processes that have the listening socket,
// and those that they started. A server that only root may look at is not seen by others.
type serverBeside struct {
	root   string // of /proc
	pids   []int
	since  time.Time
	waited map[int]int64 // so far, in nanoseconds, by process
	cores  record.ProcessorTime
}

// findServerBeside looks for the server that listens at an address, and begins to watch how long it waits.
func findServerBeside(root, address string) *serverBeside {
	n := &serverBeside{root: root, since: time.Now(), cores: record.ProcessorTimeNow(root)}
	if at, err := netip.ParseAddrPort(address); err == nil {
		n.pids = withChildren(root, holders(root, listeners(root, at)))
		n.pids = slices.DeleteFunc(n.pids, func(pid int) bool { return pid == os.Getpid() })
	}
	n.waited = n.waits()
	return n
}

// tell notes how long the server waited for a processor in each second since, and how busy all cores were.
func (n *serverBeside) tell(s *record.Sender) {
	seconds := time.Since(n.since).Seconds()
	var waited int64
	seen := false
	for pid, ns := range n.waits() {
		if before, known := n.waited[pid]; known && ns >= before {
			waited, seen = waited+ns-before, true
		}
	}
	if seen && seconds > 0 {
		perSecond := float64(waited) / 1e6 / seconds
		s.ServerWaitMSPerS = &perSecond
	}
	s.CoresBusy = record.ProcessorTimeNow(n.root).BusySince(n.cores)
}

// waits returns how long each process has waited for a processor, in nanoseconds: the second figure of each thread's
// schedstat (Documentation/scheduler/sched-stats.rst).
func (n *serverBeside) waits() map[int]int64 {
	all := map[int]int64{}
	for _, pid := range n.pids {
		threads, _ := filepath.Glob(fmt.Sprintf("%s/proc/%d/task/*/schedstat", n.root, pid))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			if fields := strings.Fields(string(text)); len(fields) > 1 {
				ns, _ := strconv.ParseInt(fields[1], 10, 64)
				all[pid] += ns
			}
		}
	}
	return all
}

// listeners returns the inodes of the sockets that listen at an address, in any of the networks of this machine.
func listeners(root string, at netip.AddrPort) []string {
	var inodes []string
	seen := map[string]bool{}
	pids, _ := filepath.Glob(root + "/proc/[0-9]*")
	for _, pid := range pids {
		network, err := os.Readlink(pid + "/ns/net")
		if err != nil || seen[network] {
			continue
		}
		seen[network] = true
		routes, _ := os.ReadFile(pid + "/net/fib_trie")
		local := at.Addr().Is6() || bytes.Contains(routes, []byte("-- "+at.Addr().String()+"\n"))
		for _, table := range []string{"/net/tcp", "/net/tcp6"} {
			text, _ := os.ReadFile(pid + table)
			for line := range strings.Lines(string(text)) {
				const listening = "0A"
				fields := strings.Fields(line)
				if len(fields) < 10 || fields[3] != listening {
					continue
				}
				address, port, _ := strings.Cut(fields[1], ":")
				number, _ := strconv.ParseUint(port, 16, 16)
				if uint16(number) == at.Port() && (address == hexadecimal(at.Addr()) || strings.Trim(address, "0") == "" && local) {
					inodes = append(inodes, fields[9])
				}
			}
		}
	}
	return inodes
}

// hexadecimal writes an address as /proc/net/tcp does: words of four bytes, each in the order of the machine.
func hexadecimal(a netip.Addr) string {
	b := a.AsSlice()
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	return fmt.Sprintf("%X", b)
}

// holders returns the processes that have one of some sockets open.
func holders(root string, inodes []string) (pids []int) {
	if len(inodes) == 0 {
		return nil
	}
	files, _ := filepath.Glob(root + "/proc/[0-9]*/fd/*")
	for _, file := range files {
		to, err := os.Readlink(file)
		inode, isSocket := strings.CutPrefix(to, "socket:[")
		if err != nil || !isSocket || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(file))))
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// withChildren returns processes with all that they started.
func withChildren(root string, pids []int) []int {
	for i := 0; i < len(pids); i++ {
		text, _ := os.ReadFile(fmt.Sprintf("%s/proc/%d/task/%d/children", root, pids[i], pids[i]))
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
