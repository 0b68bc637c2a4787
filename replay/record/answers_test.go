package record

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// stretch is a part of a run: requests at even distances, each answered after a millisecond, or failing after took.
type stretch struct {
	from, to, every time.Duration
	kind            ErrorKind
	took            time.Duration
	status          uint16
}

func (s stretch) records() []Record {
	var out []Record
	for due := s.from; due < s.to; due += s.every {
		r := Record{DueNS: int64(due), TotalUS: 1000, TTFBUS: 900, Status: 200}
		if s.kind != None {
			r.Error, r.TotalUS, r.TTFBUS, r.Status = s.kind, uint32(s.took.Microseconds()), 0, s.status
		}
		out = append(out, r)
	}
	return out
}

const (
	s  = time.Second
	ms = time.Millisecond
)

// TestATargetThatAnswersNoMoreIsDead: the same table is read by tests/unit/rundir/test_silence.py.
func TestATargetThatAnswersNoMoreIsDead(t *testing.T) {
	text, err := os.ReadFile("../../tests/fixtures/silence.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Says string
		Run  []struct {
			From   float64 `json:"from_s"`
			To     float64 `json:"to_s"`
			Every  float64 `json:"every_s"`
			Took   float64 `json:"took_s"`
			Error  string
			Status uint16
		}
		Verdict string // null if the target lives
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 15 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
	for _, row := range rows {
		var ta tally
		for _, part := range row.Run {
			kind := max(slices.Index(errorNames[:], part.Error), int(None))
			every := seconds(part.Every)
			for _, r := range (stretch{seconds(part.From), seconds(part.To), every, ErrorKind(kind), seconds(part.Took), part.Status}).records() {
				ta.add(&r)
			}
		}
		if died := ta.silence.verdict(ta.endNS); died != row.Verdict {
			t.Errorf("%s: %q, want %q", row.Says, died, row.Verdict)
		}
	}
}

func TestOnlyACompleteRunFailsByItsTarget(t *testing.T) {
	for _, c := range []struct {
		why    string
		status Status
		died   string
		want   Status
		reason string
	}{
		{"complete stays complete", Complete, "", Complete, "as said"},
		{"unless the target died", Complete, "it died", Failed, "it died"},
		{"an interrupted run was interrupted", Interrupted, "it died", Interrupted, "as said"},
		{"a failed one keeps its own reason", Failed, "it died", Failed, "as said"},
	} {
		if status, reason := endStatus(c.status, "as said", c.died); status != c.want || reason != c.reason {
			t.Errorf("%s: %s, %q", c.why, status, reason)
		}
	}
}

func TestARunDirectorySaysThatTheTargetDied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range (stretch{from: 0, to: 5 * s, every: 100 * ms, kind: ConnectRefused, took: ms}).records() {
		d.Add(&r)
	}
	summary, err := d.Close(Complete, "")
	if err != nil {
		t.Fatal(err)
	}
	read, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if summary.Status != Failed || read.Run.Status != Failed || read.Run.Reason == nil || *read.Run.Reason != summary.Reason {
		t.Errorf("%s: %s; run.json says %s", summary.Status, summary.Reason, read.Run.Status)
	}
}
