package record

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// answersAndFailures is a tally of 1,000 requests: good answers of 1, 2, 3, … ms, then failures, alike or by turns.
func answersAndFailures(failures int, timeout time.Duration, failed ...Record) *tally {
	t := &tally{timeout: timeout}
	for i := range 1000 - failures {
		t.add(&Record{TotalUS: uint32(i+1) * 1000, Status: 200, TTFBUS: 100})
	}
	for i := range failures {
		t.add(&failed[i%len(failed)])
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
		{"a fast 500 is a failure", 2, 30 * s, Record{Status: 500, TotalUS: 300}, "500.000", "wrong answer", "wrong answer"},
		{"a logged 500 that comes again is none", 2, 30 * s, Record{Status: 500, LoggedStatus: 503, TotalUS: 300}, "498.000", "997.000", "998.000"},
		{"nor is a 404 that nobody expected otherwise", 2, 30 * s, Record{Status: 404, TotalUS: 300}, "498.000", "997.000", "998.000"},
		{"but one in place of a logged 200 is", 2, 30 * s, Record{Status: 404, LoggedStatus: 200, TotalUS: 300}, "500.000", "wrong answer", "wrong answer"},
		{"too many requests is no answer", 2, 30 * s, Record{Status: 429, LoggedStatus: 200, TotalUS: 300}, "500.000", "wrong answer", "wrong answer"},
		{"an answer that came after its time-out is a time-out", 2, 30 * s, Record{Status: 404, LoggedStatus: 200, TotalUS: 31_000_000}, "500.000", "≥ 31 s", "≥ 31 s"},
		{"most of them wrong leave no median", 501, 30 * s, Record{Status: 404, LoggedStatus: 200, TotalUS: 300}, "wrong answer", "wrong answer", "wrong answer"},
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

func TestWhatIsNoShorterThanAFailureIsCensored(t *testing.T) {
	failed := func(us uint32) Record { return Record{Error: Timeout, TotalUS: us} }
	for _, c := range []struct {
		why      string
		failed   []Record
		p99, max string
	}{
		{"an answer as long as a failure", []Record{failed(990_000)}, "≥ 0.99 s", "≥ 0.99 s"},
		{"an answer that is a little shorter", []Record{failed(990_001)}, "990.000", "≥ 0.990001 s"},
		{"the shortest failure decides, whichever came first", []Record{failed(980_000), failed(5_000_000)}, "≥ 0.98 s", "≥ 0.98 s"},
		{"whichever came last", []Record{failed(5_000_000), failed(980_000)}, "≥ 0.98 s", "≥ 0.98 s"},
	} {
		summary := summarize(answersAndFailures(2, time.Millisecond, c.failed...), unrecorded{}, nil)
		cells := summary.Response.cells()
		if got := [2]string{cells[6], cells[9]}; got != [2]string{c.p99, c.max} {
			t.Errorf("%s: p99 and max are %q, want %q and %q", c.why, got, c.p99, c.max)
		}
	}
}

func TestBytesAreComparedWhereTheLogKnowsThem(t *testing.T) {
	for _, c := range []struct {
		why            string
		record         Record
		status, amount uint64
	}{
		{"as in the log", Record{Status: 200, LoggedStatus: 200, Bytes: 5, LoggedBytes: 5}, 0, 0},
		{"a body where the log has none", Record{Status: 200, LoggedStatus: 200, Bytes: 5}, 0, 1},
		{"no body where the log has one", Record{Status: 200, LoggedStatus: 200, LoggedBytes: 5}, 0, 1},
		{"a log without sizes", Record{Status: 200, LoggedStatus: 200, Bytes: 5, LoggedBytes: -1}, 0, 0},
		{"a log without statuses", Record{Status: 200, Bytes: 5}, 0, 0},
		{"another status has another body", Record{Status: 404, LoggedStatus: 200, Bytes: 5}, 1, 0},
		{"a login instead, whatever the log has", Record{Status: 302, LoggedStatus: 302, Bytes: 5, Flags: SentToLogin}, 1, 0},
		{"no answer", Record{Error: Timeout, LoggedStatus: 200, LoggedBytes: 5}, 0, 0},
	} {
		var sum tally
		sum.add(&c.record)
		if sum.statusMismatch != c.status || sum.bytesMismatch != c.amount {
			t.Errorf("%s: %d other statuses and %d other sizes, want %d and %d", c.why, sum.statusMismatch, sum.bytesMismatch, c.status, c.amount)
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
	s.WriteText(&table)
	if !strings.Contains(table.String(), "not the server's doing: 100 of 1000 requests (10 %)") {
		t.Error(table.String())
	}
	if none := summarize(answersAndFailures(0, 0, Record{}), unrecorded{}, nil); none.ClientWait != nil || none.Unqueued != nil {
		t.Error("figures of what nobody waited for")
	}
}

// TestWhatTheGeneratorAddsHasFiguresOfItsOwn: from the first request on that was over 1 ms late. Python's
// test_merge_instances.py has the same requests.
func TestWhatTheGeneratorAddsHasFiguresOfItsOwn(t *testing.T) {
	tally := &tally{timeout: 30 * time.Second}
	for i := range 1000 {
		r := Record{DueNS: int64(i) * 10_000_000, LagUS: 1000, TotalUS: 300_000, Status: 200}
		switch {
		case i >= 990: // late by 50 ms, and then for a connection
			r.LagUS, r.LateUS, r.Flags = 8_000_000, 50_000, Queued
		case i >= 900:
			r.LagUS = 50_000
		}
		tally.add(&r)
	}
	s := summarize(tally, unrecorded{}, nil)
	if *s.Response.P50 != 301 || *s.Response.P95 != 350 || *s.Prompt.P50 != 301 || *s.Prompt.P95 != 301 || *s.Prompt.Min != 300 {
		t.Errorf("response %v, %v; without lateness %v, %v, at least %v",
			*s.Response.P50, *s.Response.P95, *s.Prompt.P50, *s.Prompt.P95, *s.Prompt.Min)
	}
	if *s.Prompt.Max != 8250 {
		t.Errorf("the wait for a connection is the server's: at most %v", *s.Prompt.Max)
	}
	if s.Moved != 0.005 { // five leave their 100 ms; after that as many come in as leave
		t.Errorf("%v of the load moved", s.Moved)
	}
	if none := summarize(answersAndFailures(0, 0, Record{}), unrecorded{}, nil); none.Prompt != nil || none.Moved != 0 {
		t.Error("figures of lateness that there was not")
	}
}

func TestTimesInASentence(t *testing.T) {
	for ms, want := range map[float64]string{
		0.1234: "0.123 ms", 144: "144 ms", 999.4: "999 ms", 999.6: "1.00 s", 1970: "1.97 s", 39_260: "39.3 s", 1_234_567: "1235 s",
	} {
		if got := roundedTime(ms); got != want {
			t.Errorf("%v ms: %q instead of %q", ms, got, want)
		}
	}
}

// TestLimited holds the rule to the rows that Python's tests read, too.
func TestLimited(t *testing.T) {
	for _, row := range readRows[struct {
		Says       string
		LagMS      *float64 `json:"lag_ms"`
		ResponseMS *float64 `json:"response_ms"`
		Limited    bool
	}](t, "lateness.json", 10) {
		if got, reason := limited(row.LagMS, row.ResponseMS); got != row.Limited || (reason != "") != got {
			t.Errorf("%s: %v, %q, want %v", row.Says, got, reason, row.Limited)
		}
	}
}
