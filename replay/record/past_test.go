package record

import (
	"path/filepath"
	"testing"
	"time"
)

// A run that was, of which only a log is left: records come as fast as the disk takes them, and its end is the log's.
func TestARunOfThePastEndsWhenItEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	dir, err := Create(path, Run{Scenario: "accesslog"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := dir.Start(began); err != nil {
		t.Fatal(err)
	}
	const n = 3 * wakeBlocks * blockRecords
	for i := range n {
		dir.Put(&Record{DueNS: int64(i) * 1000, TotalUS: 5, Status: 200, LoggedBytes: -1})
		dir.queue.mu.Lock()
		if full := len(dir.queue.full); full > wakeBlocks {
			t.Fatalf("%d blocks wait", full)
		}
		dir.queue.mu.Unlock()
	}
	dir.Update(func(r *Run) { r.EndedAt = Instant{began.Add(time.Hour)} })
	if _, err := dir.Close(Complete, ""); err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if run.Len() != n || !run.Run.EndedAt.Equal(began.Add(time.Hour)) || run.Run.Target.URL != "" {
		t.Errorf("%d records, ended %v, target %+v", run.Len(), run.Run.EndedAt, run.Run.Target)
	}
}
