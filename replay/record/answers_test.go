package record

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"
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

// TestATargetThatAnswersNoMoreIsDead: the same table is read by tests/unit/rundir/test_check.py.
func TestATargetThatAnswersNoMoreIsDead(t *testing.T) {
	seconds := func(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
	for _, row := range readRows[struct {
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
	}](t, "silence.json", 15) {
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

func TestAnswersThatAreNotTheLogs(t *testing.T) {
	type answer struct {
		n              int
		logged, status uint16
	}
	for _, c := range []struct {
		why     string
		answers []answer
		says    string // "": nothing
	}{
		{"all are missing", []answer{{500, 200, 404}}, "500 of 500 answers are not those of the log: 404 for 200. The target has no such paths"},
		{"several kinds, the most frequent first", []answer{{60, 200, 200}, {5, 200, 500}, {20, 200, 301}, {4, 404, 200}, {1, 403, 200}},
			"30 of 90 answers are not those of the log: 301 for 200 (20), 500 for 200 (5), 200 for 404 (4), others. The target leads elsewhere"},
		{"the Host is unknown", []answer{{20, 301, 421}}, "The target may not know the Host that was sent"},
		{"a login is required", []answer{{20, 200, 401}}, "The target requires a login"},
		{"a limit of rates", []answer{{20, 200, 429}}, "The target limits how much one address may ask for"},
		{"it fails", []answer{{20, 200, 502}}, "The target fails"},
		{"it answers everything", []answer{{20, 404, 200}}, "The target answers what the site refused then"},
		{"too few to say anything", []answer{{19, 200, 404}}, ""},
		{"too small a part", []answer{{201, 200, 200}, {20, 200, 404}}, ""},
		{"of the same class, or not modified", []answer{{50, 404, 410}, {50, 200, 206}, {50, 304, 200}, {50, 200, 304}}, ""},
		{"the log does not know, or the visitor had left", []answer{{50, 0, 404}, {50, 499, 200}}, ""},
	} {
		var counts tally
		for _, a := range c.answers {
			for range a.n {
				counts.add(&Record{LoggedStatus: a.logged, Status: a.status})
			}
		}
		counts.add(&Record{LoggedStatus: 200, Error: Timeout})
		counts.add(&Record{LoggedStatus: 200, Status: 404, Flags: Warmup})
		summary := summarize(&counts, unrecorded{}, nil)
		var table bytes.Buffer
		summary.WriteText(&table)
		if got := summary.NotAsLogged; !strings.Contains(got, c.says) || (got == "") != (c.says == "") || !strings.Contains(table.String(), got) {
			t.Errorf("%s: says %q, want %q", c.why, got, c.says)
		}
	}
}
