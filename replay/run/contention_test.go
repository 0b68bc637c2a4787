package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/replay/record"
)

// TestContention has a /proc of this process with two threads, of nginx, and of a PHP worker that began meanwhile.
func TestContention(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, "proc", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	thread := func(pid, tid, ranMS, waitedMS int) {
		write(fmt.Sprintf("%d/task/%d/schedstat", pid, tid), fmt.Sprintf("%d000000 %d000000 7\n", ranMS, waitedMS))
	}
	self := os.Getpid()
	nginx, php, reused := self+1, self+2, self+3
	thread(self, self, 100, 50)
	thread(self, self+1, 0, 0)
	thread(nginx, nginx, 900, 400)
	thread(reused, reused, 900, 400)
	write("stat", "cpu  100 0 0 300 0 0 0 0 50 0\ncpu0 0\n")
	c := watchContention(root)
	c.since = time.Now().Add(-10 * time.Second)
	thread(self, self, 1100, 9999)
	thread(self, self+1, 1000, 9999)
	thread(nginx, nginx, 5000, 1400)
	thread(php, php, 5000, 2000)
	thread(reused, reused, 1, 1)
	write("stat", "cpu  175 0 0 325 0 0 0 0 50 0\ncpu0 0\n")
	var s record.Sender
	c.describe(&s)
	within := func(what string, got *float64, most float64) { // a little more than 10 s went by
		if got == nil || *got > most || *got < most/2 {
			t.Errorf("%s: %v, want at most %v", what, got, most)
		}
	}
	within("this process ran, ms a second", s.RanMSPerS, 200)
	within("others waited, ms a second", s.OthersWaitMSPerS, 300)
	if s.CoresBusy == nil || *s.CoresBusy != 0.75 {
		t.Errorf("busy %v, want 0.75", s.CoresBusy)
	}

	s = record.Sender{}
	watchContention(t.TempDir()).describe(&s)
	if s.RanMSPerS != nil || s.OthersWaitMSPerS != nil || s.CoresBusy != nil {
		t.Errorf("a system without /proc has %+v", s)
	}
}

func TestContentionOfThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("no schedstat here")
	}
	var s record.Sender
	watchContention("").describe(&s)
	if s.RanMSPerS == nil || s.OthersWaitMSPerS == nil {
		t.Errorf("this process, or the one that began it, is not seen: %+v", s)
	}
}
