package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFixtureReadsBack(t *testing.T) {
	want := fixtureRecords()
	for i := range want {
		want[i].LateUS = want[i].GeneratorLateUS()
	}
	readsBack(t, fixtureDir, want)
}

// TestFormat1ReadsBack says what is unknown of a run in format 1: how late the generator was with requests that waited for
// a connection, and all that the format has no column for.
func TestFormat1ReadsBack(t *testing.T) {
	want := fixtureRecords()
	for i := range want {
		p := &want[i]
		p.Served, p.Page, p.PausedUS, p.LateUS = 0, 0, 0, p.LagUS
		if p.Flags&Queued != 0 {
			p.LateUS = UnknownLateUS
		}
	}
	readsBack(t, fixtureDirV1, want)
}

func TestTailsOfBothFormats(t *testing.T) {
	for _, dir := range []string{fixtureDir, fixtureDirV1} {
		tail, err := OpenTail(filepath.Join(dir, "requests.npy"))
		if err != nil {
			t.Fatal(err)
		}
		defer tail.Close()
		var found []Record
		for records, err := tail.Next(); len(records) > 0 || err != nil; records, err = tail.Next() {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, records...)
		}
		readsBack(t, dir, found)
	}
}

func readsBack(t *testing.T, dir string, want []Record) {
	t.Helper()
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := collect(t, r); len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	} else {
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("record %d is %+v, want %+v", i, got[i], want[i])
			}
		}
	}
	if r.Run.Status != Complete || r.Summary == nil || r.Summary.Requests.Sent != uint64(len(want)) {
		t.Errorf("run %+v, summary %+v", r.Run, r.Summary)
	}
	if !r.Run.StartedAt.Equal(fixtureStart) {
		t.Errorf("started at %v, want %v", r.Run.StartedAt, fixtureStart)
	}
	if len(r.Routes) != 4 || len(r.Errors) != len(errorNames) {
		t.Errorf("routes %v, errors %v", r.Routes, r.Errors)
	}
}

func collect(t *testing.T, r *Reader) []Record {
	t.Helper()
	var records []Record
	for record, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}

func TestOpenOfDamagedRuns(t *testing.T) {
	for _, c := range []struct {
		why    string
		damage func(dir string) error
		want   int64 // records, or −1 for an error
	}{
		{"a last record cut in two is left alone", func(dir string) error {
			return os.Truncate(filepath.Join(dir, "requests.npy"), headerSize+10*Size+33)
		}, 10},
		{"a run that was killed has no summary", func(dir string) error {
			return os.Remove(filepath.Join(dir, "summary.json"))
		}, 1300},
		{"a header cut short is an error", func(dir string) error {
			return os.Truncate(filepath.Join(dir, "requests.npy"), 100)
		}, -1},
		{"other columns are an error", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "requests.npy"), make([]byte, 1000), 0o644)
		}, -1},
		{"a run.json that is no JSON is an error", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "run.json"), []byte("{"), 0o644)
		}, -1},
		{"a run without names of errors is an error", func(dir string) error {
			return os.Remove(filepath.Join(dir, "errors.json"))
		}, -1},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		writeFixture(t, dir)
		if err := c.damage(dir); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRun(dir)
		switch {
		case c.want < 0 && err == nil:
			t.Errorf("%s: it opened", c.why)
		case c.want >= 0 && err != nil:
			t.Errorf("%s: %v", c.why, err)
		case err == nil:
			if got := int64(len(collect(t, r))); got != c.want || r.Len() != c.want {
				t.Errorf("%s: %d records, want %d", c.why, got, c.want)
			}
			r.Close()
		}
	}
	if _, err := OpenRun(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening no directory: %v", err)
	}
}
