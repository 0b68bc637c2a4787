package run

// How generator and server take the processor from each other on a machine that they share.

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"plimsoll/replay/record"
)

// contention watches how generator and server take the processor from each other on a machine that they share. All
// other threads of the machine count as the server's: what answers may be PHP behind nginx, a database, a container
// behind a proxy, a guest. Threads that end meanwhile are not seen, nor is what another PID namespace has.
type contention struct {
	root    string // of /proc
	since   time.Time
	threads map[string]turns
	cores   record.ProcessorTime
}

// turns are the first two figures of a thread's schedstat (Documentation/scheduler/sched-stats.rst), in nanoseconds.
type turns struct{ ran, waited int64 }

func watchContention(root string) *contention {
	return &contention{root: root, since: time.Now(), threads: readTurns(root), cores: record.ProcessorTimeNow(root)}
}

// describe notes how long this process had a processor in each second since, how long all others waited for one, and
// how busy all cores were.
func (c *contention) describe(s *record.Sender) {
	var others, own turns
	isOther, isOwn := false, false
	self := strconv.Itoa(os.Getpid())
	for thread, now := range readTurns(c.root) {
		before := c.threads[thread] // of one that is new: none
		ran, waited := now.ran-before.ran, now.waited-before.waited
		if ran < 0 || waited < 0 {
			continue // its number was reused
		}
		if pid, _, _ := strings.Cut(thread, "/"); pid == self {
			own.ran, isOwn = own.ran+ran, true
		} else {
			others.waited, isOther = others.waited+waited, true
		}
	}
	if seconds := time.Since(c.since).Seconds(); isOther && isOwn && seconds > 0 {
		ran, waited := float64(own.ran)/1e6/seconds, float64(others.waited)/1e6/seconds
		s.RanMSPerS, s.OthersWaitMSPerS = &ran, &waited
	}
	s.CoresBusy = record.ProcessorTimeNow(c.root).BusySince(c.cores)
}

// readTurns reads the schedstat of all threads, by "PID/task/TID".
func readTurns(root string) map[string]turns {
	all := map[string]turns{}
	files, _ := filepath.Glob(root + "/proc/[0-9]*/task/*/schedstat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			ran, _ := strconv.ParseInt(fields[0], 10, 64)
			waited, _ := strconv.ParseInt(fields[1], 10, 64)
			all[strings.TrimPrefix(filepath.Dir(file), root+"/proc/")] = turns{ran, waited}
		}
	}
	return all
}
