package record

import (
	"strings"
	"testing"
	"time"
)

const timeout = 30 * time.Second

// TestLimitsAreJudgedAsInPython: the same table is read by tests/unit/exchange/test_merge_instances.py.
func TestLimitsAreJudgedAsInPython(t *testing.T) {
	for _, row := range readRows[struct {
		Says, Limit      string
		Status           Status
		LimitedOtherwise bool `json:"limited_otherwise"`
		Summary          Summary
		Outcome          Outcome
		Sentence         string
	}](t, "limits.json", 20) {
		limits, err := ParseLimits([]string{row.Limit}, timeout)
		if err != nil {
			t.Fatal(err)
		}
		row.Summary.Status, row.Summary.GeneratorLimited = row.Status, true
		if row.Summary.GeneratorLimitedReason = sentLate + ": by a lot"; row.LimitedOtherwise {
			row.Summary.GeneratorLimitedReason = "it left requests out"
		}
		want := Verdict{row.Limit, row.Outcome, row.Sentence}
		if got := limits[0].judge(&row.Summary); got != want {
			t.Errorf("%s:\n%+v\nwant\n%+v", row.Says, got, want)
		}
	}
}

// TestBurstsEndNoRun: a server that waits for nothing else serves late what was sent at once.
func TestBurstsEndNoRun(t *testing.T) {
	for _, row := range []struct {
		says  string
		lagUS uint32
		ends  bool
	}{
		{"sent in time", 0, true},
		{"late, beside the limit by less than 5 %", 30_000, true},
		{"all at once", 2_000_000, false},
	} {
		limits, err := ParseLimits([]string{"p99=800ms"}, timeout)
		if err != nil {
			t.Fatal(err)
		}
		dir := &Dir{tally: tally{limits: countedLimits(limits), timeout: timeout}}
		for i := range 1000 {
			dir.tally.add(&Record{DueNS: int64(i) * 10_000_000, LagUS: row.lagUS, TotalUS: 900_000, Status: 200})
		}
		if got := dir.Unkeepable(1000); (got != "") != row.ends {
			t.Errorf("%s: %q", row.says, got)
		}
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	for _, row := range []struct{ says, text, want string }{
		{"a figure that there is not", "p98=1s", `"p98" is not a figure: give one of p50, p90`},
		{"no figure", "=1s", `"" is not a figure`},
		{"no limit", "p99.9", `"" is not a time`},
		{"a time without a unit", "p99.9=800", `"800" is not a time: give one with its unit, such as p99.9=800ms`},
		{"no time at all", "max=0s", `"0s" is not a time`},
		{"a time backwards", "max=-1s", `"-1s" is not a time`},
		{"a share of a time", "p99=1%", `"1%" is not a time`},
		{"the time-out, over which nothing is timed", "p99=30s", `a request that takes 30s has failed (--timeout): give a shorter time`},
		{"a time of errors", "errors=1s", `"1s" is not a share of requests: give 0% to under 100%`},
		{"errors that do not say of what", "errors=0.1", `"0.1" is not a share`},
		{"a share over all", "errors=100%", `"100%" is not a share`},
		{"a share under none", "errors=-1%", `"-1%" is not a share`},
		{"no number", "errors=NaN%", `"NaN%" is not a share`},
	} {
		if limits, err := ParseLimits([]string{row.text}, timeout); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, %v, want %s", row.says, limits, err, row.want)
		}
	}
	_, err := ParseLimits([]string{"p99=1s", "p99=2s", "p98=1s"}, timeout)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "p99 has a limit already") {
		t.Errorf("not all at once: %v", err)
	}
	limits, err := ParseLimits([]string{" p99.9 = 800ms", "errors= 0.1 %"}, timeout)
	if err != nil || limits[0].String() != "p99.9=800ms" || limits[1].percent != 0.1 {
		t.Errorf("spaces: %+v, %v", limits, err)
	}
}

// TestLimitsThatCannotBeKeptAnyMore: only what is sure, whatever is still to come, ends a run.
func TestLimitsThatCannotBeKeptAnyMore(t *testing.T) {
	slow := Record{TotalUS: 900_000, Status: 200}
	ok := Record{TotalUS: 1_000, Status: 200}
	failed := Record{TotalUS: 1_000, Error: Reset}
	late := Record{LagUS: 900_000, TotalUS: 1_000, Status: 200}
	queued := Record{LagUS: 900_000, LateUS: 10, TotalUS: 1_000, Status: 200, Flags: Queued}
	own := Record{LagUS: 900_000, TotalUS: 1_000, Status: 200, Flags: Queued | ClientQueued}
	never := Record{LagUS: 30_000_000, Error: Timeout, Flags: Queued | ClientQueued}
	warmup := Record{TotalUS: 900_000, Status: 200, Flags: Warmup}
	for _, row := range []struct {
		says, limit string
		record      Record
		count       int
		most        uint64
		want        string
	}{
		{"as many slow ones as may be", "p99.9=800ms", slow, 1, 1000, ""},
		{"one more: the 1,000 can no longer have such a p99.9", "p99.9=800ms", slow, 2, 1000,
			"p99.9=800ms: 2 requests took over 800 ms or failed, and of the 1,000 that the run has at most, 1 may"},
		{"a longer run has room for more", "p99.9=800ms", slow, 2, 2000, ""},
		{"fast ones", "p99.9=800ms", ok, 500, 1000, ""},
		{"failures count, however fast", "p99.9=800ms", failed, 2, 1000, "p99.9=800ms: 2 requests"},
		{"the generator's own lateness is not the server's", "p99.9=800ms", late, 500, 1000, ""},
		{"to wait for a connection is", "p99.9=800ms", queued, 2, 1000, "p99.9=800ms: 2 requests"},
		{"to wait for one's own client is not", "p99.9=800ms", own, 500, 1000, ""},
		{"nor never to be sent because of that", "errors=1%", never, 500, 1000, ""},
		{"the warm-up counts nowhere", "p99.9=800ms", warmup, 500, 1000, ""},
		{"no request may be over the maximum", "max=800ms", slow, 1, 1000, "max=800ms: 1 request took"},
		{"errors as many as may be", "errors=1%", failed, 10, 1000, ""},
		{"one more", "errors=1%", failed, 11, 1000, "errors=1%: 11 requests failed, and of the 1,000 that the run has at most, 10 may"},
		{"slow answers are no errors", "errors=1%", slow, 500, 1000, ""},
	} {
		limits, err := ParseLimits([]string{row.limit}, timeout)
		if err != nil {
			t.Fatal(err)
		}
		dir := &Dir{tally: tally{limits: countedLimits(limits), timeout: timeout}}
		for range row.count {
			dir.tally.add(&row.record)
		}
		got := dir.Unkeepable(row.most)
		if got != row.want && (row.want == "" || !strings.HasPrefix(got, row.want)) {
			t.Errorf("%s: %q, want %q", row.says, got, row.want)
		}
		summary := summarize(&dir.tally, unrecorded{}, nil)
		summary.Status = Interrupted
		if v := dir.tally.verdicts(&summary)[0]; got != "" && v.Outcome != Exceeded {
			t.Errorf("%s: the run was ended, and then %+v", row.says, v)
		}
	}
}
