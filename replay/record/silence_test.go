package record

import (
	"path/filepath"
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

func TestARunWhoseTargetDiedHasFailed(t *testing.T) {
	answers := func(from, to time.Duration) stretch { return stretch{from: from, to: to, every: 100 * ms} }
	fails := func(from, to time.Duration, kind ErrorKind, took time.Duration) stretch {
		return stretch{from: from, to: to, every: 100 * ms, kind: kind, took: took}
	}
	for _, c := range []struct {
		why  string
		run  []stretch
		died string // a part of the reason; "" if the target lives
	}{
		{"all is answered", []stretch{answers(0, 60*s)}, ""},
		{"nothing was sent", nil, ""},
		{"refused from the middle on", []stretch{answers(0, 30*s), fails(30*s, 60*s, ConnectRefused, ms)},
			"the target gave no answer after 29.9 s: the last 300 requests failed within 30.0 s, 300 of them with connect_refused"},
		{"it restarts and comes back", []stretch{answers(0, 30*s), fails(30*s, 50*s, ConnectRefused, ms), answers(50*s, 60*s)}, ""},
		{"one answer at the very end and it lives", []stretch{fails(0, 59*s, ConnectRefused, ms), answers(59*s, 59*s+ms)}, ""},
		{"it hung, and every request timed out", []stretch{answers(0, 30*s), fails(30*s, 40*s, Timeout, 30*s)}, "with timeout"},
		{"it reset every connection", []stretch{answers(0, 5*s), fails(5*s, 9*s, Reset, ms)}, "with reset"},
		{"never one answer", []stretch{fails(0, 9*s, ConnectFailed, ms)}, "gave no answer at all"},
		{"the most usual failure is named", []stretch{answers(0, 5*s), fails(5*s, 6*s, Reset, ms), fails(6*s, 9*s, ConnectRefused, ms)},
			"the last 40 requests failed within 4.0 s, 30 of them with connect_refused"},
		{"nine failures may be chance", []stretch{answers(0, 5*s), {from: 5 * s, to: 14 * s, every: s, kind: ConnectRefused, took: ms}}, ""},
		{"ten are not", []stretch{answers(0, 5*s), {from: 5 * s, to: 15 * s, every: s, kind: ConnectRefused, took: ms}}, "last 10 requests"},
		{"under two seconds may be a restart", []stretch{answers(0, 60*s), fails(60*s, 61900*ms, ConnectRefused, ms)}, ""},
		{"as may a hundredth of a long run", []stretch{answers(0, 1000*s), fails(1000*s, 1009*s, ConnectRefused, ms)}, ""},
		{"but not more than that", []stretch{answers(0, 1000*s), fails(1000*s, 1012*s, ConnectRefused, ms)}, "after 999.9 s"},
		{"slow requests that were sent before the last answer say nothing of what came after it",
			[]stretch{answers(0, 30*s), fails(10*s, 12*s, Timeout, 30*s)}, ""},
		{"a wrong answer is an answer", []stretch{answers(0, 5*s), {from: 5 * s, to: 60 * s, every: s, kind: BadResponse, took: ms, status: 502}}, ""},
		{"what we gave up ourselves says nothing", []stretch{answers(0, 5*s), fails(5*s, 60*s, Aborted, ms)}, ""},
	} {
		var ta tally
		for _, part := range c.run {
			for _, r := range part.records() {
				ta.add(&r)
			}
		}
		died := ta.silence.verdict(ta.endNS)
		if (c.died == "") != (died == "") || !strings.Contains(died, c.died) {
			t.Errorf("%s: %q, want %q", c.why, died, c.died)
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
		if status, reason := ending(c.status, "as said", c.died); status != c.want || reason != c.reason {
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
