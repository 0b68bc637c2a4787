package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

// faulty answers every nth request with a status of 503.
func faulty(t *testing.T, nth int) *httptest.Server {
	t.Helper()
	n := make(chan int, 1)
	n <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		count := <-n + 1
		n <- count
		if count%nth == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func longLog(t *testing.T, requests int) string {
	t.Helper()
	var lines []string
	for i := range requests {
		lines = append(lines, logLine(i, fmt.Sprintf("GET /%d HTTP/1.1", i), "UA"))
	}
	return writeLog(t, lines...)
}

func TestLimitsDecideOnTheExitCode(t *testing.T) {
	log := longLog(t, 1200)
	for _, row := range []struct {
		why, args, says string
		code            int
		outcomes        []record.Outcome
	}{
		{"kept", "--fail-over max=20s", "", cli.ExitYes, []record.Outcome{record.Kept}},
		{"the wrong answers are over it", "--fail-over errors=1%", "over the limit: errors=1%: 240 of 1,200 requests failed (20 %), over the limit of 1 %", cli.ExitNo,
			[]record.Outcome{record.Exceeded}},
		{"a failure counts at its time-out", "--fail-over p90=29s", "over the limit: p90=29s: p90 of the response time is at least 30 s", cli.ExitNo,
			[]record.Outcome{record.Exceeded}},
		{"too few for the percentile", "--fail-over p99.99=29s", "not judged: p99.99=29s: p99.99 of the response time takes 10,000 requests, and there were 1,200",
			cli.ExitUnknown, []record.Outcome{record.NotJudged}},
		{"one over, another not judged: it is over", "--fail-over p99.99=29s,errors=1%", "over the limit: errors=1%", cli.ExitNo,
			[]record.Outcome{record.NotJudged, record.Exceeded}},
	} {
		nth := 5
		if row.code == cli.ExitYes {
			nth = 10_000
		}
		out := t.TempDir()
		args := append([]string{"run", log, "--target", faulty(t, nth).URL, "--speed", "max", "--connections", "4", "--quiet", "--out", out}, strings.Fields(row.args)...)
		code, table, errOut := call(args...)
		if code != row.code || !strings.Contains(errOut, row.says) {
			t.Errorf("%s: exit %d: %s, want %q", row.why, code, errOut, row.says)
		}
		got := latest(t, out)
		var outcomes []record.Outcome
		for _, v := range got.Summary.Limits {
			outcomes = append(outcomes, v.Outcome)
			if line := fmt.Sprintf("\nLimit %s %s: ", v.Limit, v.Outcome); !strings.Contains(table, line) {
				t.Errorf("%s: %q is not told:\n%s", row.why, line, table)
			}
		}
		if fmt.Sprint(outcomes) != fmt.Sprint(row.outcomes) || got.Run.Status != record.Complete || len(got.Run.Limits) != len(row.outcomes) {
			t.Errorf("%s: %v of %v, %s", row.why, got.Summary.Limits, got.Run.Limits, got.Run.Status)
		}
	}
}

func TestLimitsAreInTheJSON(t *testing.T) {
	code, out, _ := call("run", longLog(t, 10), "--target", faulty(t, 2).URL, "--speed", "max", "--quiet", "--json", "--out", t.TempDir(), "--fail-over", "errors=20%")
	var summary record.Summary
	if err := json.Unmarshal([]byte(out), &summary); err != nil || code != cli.ExitNo {
		t.Fatalf("exit %d: %v: %s", code, err, out)
	}
	if want := (record.Verdict{Limit: "errors=20%", Outcome: record.Exceeded, Says: "5 of 10 requests failed (50 %), over the limit of 20 %"}); len(summary.Limits) != 1 ||
		summary.Limits[0] != want {
		t.Errorf("%+v", summary.Limits)
	}
}

// A run that cannot keep its limit is ended, with what is unsent counted. The server answers wrongly from the first
// request on, so 31 of 3,000 decide; at 100 a second the whole run would take half a minute.
func TestARunThatCannotKeepItsLimitIsEnded(t *testing.T) {
	out := t.TempDir()
	code, table, errOut := call("run", longLog(t, 3000), "--target", faulty(t, 1).URL, "--rate", "100", "--quiet", "--out", out,
		"--fail-over", "errors=1%", "--abort-on-fail", "--abort-after", "100ms")
	if code != cli.ExitNo {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	got := latest(t, out)
	if got.Run.Status != record.Interrupted || got.Summary.Requests.Unsent == nil || got.Run.Reason == nil ||
		got.Summary.Requests.Sent == 3000 || got.Summary.Requests.Sent+*got.Summary.Requests.Unsent != 3000 {
		t.Fatalf("%s, %+v: %s", got.Run.Status, got.Summary.Requests, errOut)
	}
	for _, part := range []string{"ended by --abort-on-fail: errors=1%: ", " requests failed, and of the 3,000 that the run has at most, 30 may, with "} {
		if !strings.Contains(*got.Run.Reason, part) || !strings.Contains(errOut, part) {
			t.Errorf("%q is not said: %s", part, errOut)
		}
	}
	if got.Summary.Limits[0].Outcome != record.Exceeded || !strings.Contains(table, "Limit errors=1% exceeded: ") {
		t.Errorf("%+v\n%s", got.Summary.Limits, table)
	}
}

func TestALimitThatWillNotBeJudgedIsDoubtedBefore(t *testing.T) {
	_, _, errOut := call("run", longLog(t, 20), "--target", faulty(t, 100).URL, "--speed", "max", "--quiet", "--out", t.TempDir(), "--fail-over", "p99.9=1s")
	if want := "--fail-over p99.9=1s will not be judged: it takes 1,000 requests, and the run has 20 at most"; !strings.Contains(errOut, want) {
		t.Errorf("%s, want %s", errOut, want)
	}
}
