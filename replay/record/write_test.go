package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestADirectoryThatIsGoneFailsTheRun(t *testing.T) {
	rows := []struct {
		why   string
		spoil func(out, dir string) error
	}{
		{"removed", func(_, dir string) error { return os.RemoveAll(dir) }},
		{"removed with the folder of all runs", func(out, _ string) error { return os.RemoveAll(out) }},
		{"moved", func(out, dir string) error { return os.Rename(dir, filepath.Join(out, "elsewhere")) }},
		{"replaced by a file", func(_, dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}},
		{"replaced by another run", func(_, dir string) error {
			other, err := Create(dir+"-2", Run{}, Options{})
			if err != nil {
				return err
			}
			_, err = other.Close(Complete, "")
			return errors.Join(err, os.RemoveAll(dir), os.Rename(dir+"-2", dir))
		}},
	}
	for _, row := range rows {
		out := filepath.Join(t.TempDir(), "results")
		dir := filepath.Join(out, "run")
		d, err := Create(dir, Run{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		d.Start(time.Now())
		d.Add(&Record{TotalUS: 1})
		if err := row.spoil(out, dir); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Join(dir, "run.json"))
		select {
		case <-d.Failed():
		case <-time.After(time.Minute):
			t.Fatalf("%s: nobody noticed", row.why)
		}
		s, err := d.Close(Complete, "")
		if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", row.why, err)
		}
		if s.Status != Failed || s.Requests.Sent != 1 {
			t.Errorf("%s: the summary says %s, and %d requests", row.why, s.Status, s.Requests.Sent)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, "run.json")); string(after) != string(before) {
			t.Errorf("%s: what is there now was changed", row.why)
		}
	}
}

func TestADirectoryThatIsThereIsNotGone(t *testing.T) {
	d, err := Create(filepath.Join(t.TempDir(), "run"), Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Start(time.Now())
	if err := d.checkInPlace(); err != nil {
		t.Error(err)
	}
	if _, err := d.Close(Complete, ""); err != nil {
		t.Error(err)
	}
}

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
