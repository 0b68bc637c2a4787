package record

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/served"
)

func TestTheSentenceSaysWhatHappened(t *testing.T) {
	for _, row := range []struct {
		why  string
		good int
		bad  []Record
		want string
	}{
		{"nothing", 0, nil, "No request was measured."},
		{"one", 1, nil, "1 request, none failed. The slowest took 1 ms."},
		{"too few for one in a thousand", 999, nil, "999 requests, none failed. The slowest took 999 ms."},
		{"enough", 1000, nil, "1000 requests, none failed. The slowest one in a thousand took 999 ms or more."},
		{"a time-out beyond p99.9", 1999, []Record{{Error: Timeout, TotalUS: 30_000_000}},
			"2000 requests, 1 failed (0.05 %). The slowest one in a thousand took 2.00 s or more."},
		{"time-outs", 998, []Record{{Error: Timeout, TotalUS: 30_000_000}, {Error: Timeout, TotalUS: 30_000_000}},
			"1000 requests, 2 failed (0.2 %). The slowest one in a thousand took at least 30 s."},
		{"the slowest of few", 9, []Record{{Error: Timeout, TotalUS: 30_000_000}}, "10 requests, 1 failed (10 %). The slowest took at least 30 s."},
		{"wrong answers", 0, []Record{{Status: 500, TotalUS: 100}}, "1 request, 1 failed (100 %). The slowest is a wrong answer."},
	} {
		counts := &tally{timeout: 30 * time.Second}
		for i := range row.good {
			counts.add(&Record{TotalUS: uint32(i+1) * 1000, Status: 200})
		}
		for i := range row.bad {
			counts.add(&row.bad[i])
		}
		if got := summarize(counts, unrecorded{}, nil).sentence(); got != row.want {
			t.Errorf("%s: %s", row.why, got)
		}
	}
	counts := &tally{} // whose time-out nobody knows
	counts.add(&Record{Error: ConnectRefused, TotalUS: 300})
	if got, want := summarize(counts, unrecorded{}, nil).sentence(), "1 request, 1 failed (100 %). The slowest failed."; got != want {
		t.Error(got)
	}
}

// What a user looks for stands first: the sentence, the limits' answers, the percentiles, and then The Grinder's table.
func TestTheResultIsInOrder(t *testing.T) {
	var out strings.Builder
	summary := summarize(answersAndFailures(0, 30*s), unrecorded{}, nil)
	summary.Limits = []Verdict{{Limit: "p50=1s", Outcome: "kept", Says: "it is"}}
	summary.WriteText(&out)
	at := 0
	for _, part := range []string{"1000 requests, none failed. ", "\nLimit p50=1s kept: it is.\n\nms ", "\n\nThe Grinder's table\nTest ", "\nTotal "} {
		next := strings.Index(out.String()[at:], part)
		if next < 0 {
			t.Fatalf("%q is missing, or too early, in\n%s", part, out.String())
		}
		at += next
	}
}

func TestTheTableShowsTimeOuts(t *testing.T) {
	var out bytes.Buffer
	summarize(answersAndFailures(2, 30*s, Record{Error: Timeout, TotalUS: 30_000_000}), unrecorded{}, nil).WriteText(&out)
	if !strings.Contains(out.String(), "≥ 30 s") {
		t.Errorf("no time-out in\n%s", out.String())
	}
}

// Whether caches answered is said where the answers say it.
func TestTheResultHasCaches(t *testing.T) {
	for _, row := range []struct {
		says string
		by   []served.By
		want string
	}{
		{"no header says it", []served.By{served.Unknown, served.Unknown}, ""},
		{"some do", []served.By{served.Unknown, served.Hit, served.Miss, served.Hit}, "\nFrom a cache: 2 of 4 answers (50 %).\n"},
		{"none was from one", []served.By{served.Pass, served.Expired}, "\nFrom a cache: 0 of 2 answers (0 %).\n"},
		{"another program's number", []served.By{200, served.Hit}, "\nFrom a cache: 1 of 2 answers (50 %).\n"},
	} {
		counts := &tally{}
		for _, by := range row.by {
			counts.add(&Record{TotalUS: 1000, Status: 200, Served: by})
		}
		counts.add(&Record{TotalUS: 1000, Status: 200, Served: served.Hit, Error: ClosedEarly})
		counts.add(&Record{TotalUS: 1000, Status: 200, Served: served.Hit, Flags: Warmup})
		var out strings.Builder
		summarize(counts, unrecorded{}, nil).WriteText(&out)
		if got := out.String(); !strings.Contains(got, row.want) || row.want == "" && strings.Contains(got, "cache") {
			t.Errorf("%s:\n%s", row.says, got)
		}
	}
}

// How late the generator was stands in the table where the lag, which is of requests that did not wait, does not show it.
func TestTheTableHasLateness(t *testing.T) {
	stalled := Record{LagUS: 2_992_000, LateUS: 2_992_000, TotalUS: 1000, Status: 200, Flags: Queued}
	for says, row := range map[string]struct {
		flags Flags
		shows bool
	}{"all went out at once": {0, false}, "one waited": {Queued, true}} {
		stalled.Flags = row.flags
		var out strings.Builder
		d := &tally{}
		d.add(&stalled)
		d.add(&Record{TotalUS: 1000, Status: 200})
		summarize(d, unrecorded{}, nil).WriteText(&out)
		if shows := strings.Contains(out.String(), "\nlate "); shows != row.shows || !strings.Contains(out.String(), "2992.000") {
			t.Errorf("%s:\n%s", says, out.String())
		}
	}
}
