package record

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// answersAndFailures is a tally of 1,000 requests: good answers of 1, 2, 3, … ms, then failures after 0.3 ms.
func answersAndFailures(failures int, timeout time.Duration, failed Record) *tally {
	t := &tally{timeout: timeout}
	for i := range 1000 - failures {
		t.add(&Record{TotalUS: uint32(i+1) * 1000, Status: 200, TTFBUS: 100})
	}
	for range failures {
		t.add(&failed)
	}
	return t
}

func TestFailuresAreNeverFast(t *testing.T) {
	refused := Record{Error: ConnectRefused, TotalUS: 300}
	for _, c := range []struct {
		why      string
		failures int
		timeout  time.Duration
		failed   Record
		p50      string
		p999     string
		max      string
	}{
		{"without failures all is measured", 0, 30 * s, refused, "500.000", "999.000", "1000.000"},
		{"one failure is the longest time, and not the shortest", 1, 30 * s, refused, "500.000", "999.000", "≥ 30 s"},
		{"a percentile that falls on one is the time-out", 2, 30 * s, refused, "500.000", "≥ 30 s", "≥ 30 s"},
		{"half of them failing fast leaves no median", 501, 30 * s, refused, "≥ 30 s", "≥ 30 s", "≥ 30 s"},
		{"where nobody knows the time-out, it is withheld", 2, 0, refused, "500.000", "-", "-"},
		{"a failure that took longer than its time-out counts so long", 2, time.Millisecond, Record{Error: Timeout, TotalUS: 5_000_000},
			"500.000", "≥ 5 s", "≥ 5 s"},
		{"a fast 500 is a failure", 2, 30 * s, Record{Status: 500, TotalUS: 300}, "500.000", "≥ 30 s", "≥ 30 s"},
		{"a logged 500 that comes again is none", 2, 30 * s, Record{Status: 500, LoggedStatus: 503, TotalUS: 300}, "498.000", "997.000", "998.000"},
		{"nor is a 404 that nobody expected otherwise", 2, 30 * s, Record{Status: 404, TotalUS: 300}, "498.000", "997.000", "998.000"},
		{"but one in place of a logged 200 is", 2, 30 * s, Record{Status: 404, LoggedStatus: 200, TotalUS: 300}, "500.000", "≥ 30 s", "≥ 30 s"},
		{"too many requests is no answer", 2, 30 * s, Record{Status: 429, LoggedStatus: 200, TotalUS: 300}, "500.000", "≥ 30 s", "≥ 30 s"},
		{"a time-out of a day takes no memory", 2, 24 * time.Hour, refused, "500.000", "≥ 86400 s", "≥ 86400 s"},
	} {
		summary := summarize(answersAndFailures(c.failures, c.timeout, c.failed), unrecorded{}, nil)
		for _, times := range []Statistics{summary.Response, summary.Service} {
			cells := times.cells()
			if got := []string{cells[3], cells[7], cells[9]}; fmt.Sprint(got) != fmt.Sprint([]string{c.p50, c.p999, c.max}) {
				t.Errorf("%s: p50, p99.9 and max are %q, want %q %q %q", c.why, got, c.p50, c.p999, c.max)
			}
		}
	}
}

func TestTheMeanCountsFailuresAtTheirTimeOut(t *testing.T) {
	failed := Record{Error: ConnectRefused, TotalUS: 300}
	got := summarize(answersAndFailures(500, 30*s, failed), unrecorded{}, nil).Response.Mean
	if want := (250.5*500 + 30_000*500) / 1000; got == nil || math.Abs(*got-want) > 1e-6 {
		t.Errorf("the mean is %v, want %v", got, want)
	}
	unknown := summarize(answersAndFailures(500, 0, failed), unrecorded{}, nil).Response
	if unknown.Mean != nil || unknown.Stddev != nil {
		t.Error("there is a mean of times that nobody knows")
	}
}

func TestTheTableShowsTimeOuts(t *testing.T) {
	var out bytes.Buffer
	summarize(answersAndFailures(2, 30*s, Record{Error: Timeout, TotalUS: 30_000_000}), unrecorded{}, nil).WriteTable(&out)
	if !strings.Contains(out.String(), "≥ 30 s") {
		t.Errorf("no time-out in\n%s", out.String())
	}
}

// TestWhatAClientWaitsForItselfHasFiguresOfItsOwn: from the first such request on, and as if it had been there before.
func TestWhatAClientWaitsForItselfHasFiguresOfItsOwn(t *testing.T) {
	tally := &tally{timeout: 30 * time.Second}
	for i := range 1000 {
		r := Record{TotalUS: 300_000, Status: 200}
		switch {
		case i == 900:
			r = Record{LagUS: 30_000_000, Error: Timeout, Flags: Queued | ClientQueued} // was never sent
		case i > 900:
			r.LagUS, r.Flags = 8_000_000, Queued|ClientQueued
		case i > 800:
			r.LagUS, r.Flags = 2_000_000, Queued // for --max-connections
		}
		tally.add(&r)
	}
	s := summarize(tally, unrecorded{}, nil)
	if n := s.Requests; n.Queued != 199 || n.ClientQueued != 100 || n.ClientTimeouts != 1 {
		t.Errorf("%+v", n)
	}
	if *s.ClientWait.P50 != 8000 || *s.Response.P95 != 8300 || *s.Unqueued.P95 != 2300 || *s.Unqueued.P50 != 300 || *s.Unqueued.Max != 2300 {
		t.Errorf("wait %v, response %v, without %v, at most %v", *s.ClientWait.P50, *s.Response.P95, *s.Unqueued.P95, *s.Unqueued.Max)
	}
	var table bytes.Buffer
	s.WriteTable(&table)
	if !strings.Contains(table.String(), "not the server's doing: 100 of 1000 requests (10 %)") {
		t.Error(table.String())
	}
	if none := summarize(answersAndFailures(0, 0, Record{}), unrecorded{}, nil); none.ClientWait != nil || none.Unqueued != nil {
		t.Error("figures of what nobody waited for")
	}
}
