package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// timedFormat is nginx's combined with $request_time.
const timedFormat = `--format=%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T`

// timedLog writes a log of n requests, one a second, of 0.25 s each; the first of them without a duration.
func timedLog(t *testing.T, n, without int) string {
	t.Helper()
	var lines []string
	for i := range n {
		took := "0.250"
		if i < without {
			took = "-"
		}
		line := strings.TrimSuffix(logLine(i, fmt.Sprintf("GET /wp-login.php?n=%d HTTP/1.1", i), "UA"), "\n")
		lines = append(lines, line+" "+took+"\n")
	}
	return writeLog(t, lines...)
}

func TestImportMakesARunDirectory(t *testing.T) {
	out := t.TempDir()
	code, said, errOut := call("import", timedLog(t, 60, 2), timedFormat, "--out", out, "--backend", "sata", "--quiet")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	for _, part := range []string{": 58 requests from ", "2 requests have no duration", "without the network to the visitor"} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q: %s", part, said)
		}
	}
	run := latest(t, out)
	if run.Run.Scenario != "accesslog" || run.Run.Program.Name != "accesslog" || *run.Run.Backend != "sata" || run.Run.Status != "complete" {
		t.Errorf("%+v", run.Run)
	}
	if at := run.Run.StartedAt.UTC().Format("2006-01-02 15:04:05"); !strings.HasPrefix(at, "2026-11-20 10:00:0") {
		t.Errorf("started at %s, and not when the log begins", at)
	}
	if lasted := run.Run.EndedAt.Sub(run.Run.StartedAt.Time).Seconds(); lasted < 57 || lasted > 61 {
		t.Errorf("it lasted %v s", lasted)
	}
	if p50 := run.Summary.Response.P50; p50 == nil || *p50 != 250 || run.Summary.Requests.Skipped["no_duration"] != 2 {
		t.Errorf("%+v", run.Summary)
	}
	for r, err := range run.Records() {
		if err != nil || r.Status != 200 || r.LoggedStatus != 0 || r.LagUS != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	text, _ := os.ReadFile(filepath.Join(out, "latest", "run.json"))
	if !strings.Contains(string(text), `"target": null`) || strings.Contains(string(text), "n=1") {
		t.Errorf("%s", text)
	}
	events, _ := os.ReadFile(filepath.Join(out, "latest", "events.jsonl"))
	stop := run.Run.EndedAt.Sub(run.Run.StartedAt.Time).Nanoseconds()
	if want := fmt.Sprintf(`{"t_ns":%d,`, stop/1000); !strings.Contains(string(events), want[:len(want)-1]) {
		t.Errorf("the run stops at another instant than its end: %s", events)
	}
}

func TestImportSaysWhichLogWasGivenTwice(t *testing.T) {
	log := timedLog(t, 60, 0)
	code, said, errOut := call("import", log, log, log, timedFormat, "--out", t.TempDir(), "--quiet")
	if code != 0 || !strings.Contains(said, ": 60 requests from ") || strings.Count(said, log+" was given more than once, and is read once") != 1 {
		t.Errorf("exit %d: %s%s", code, said, errOut)
	}
}

func TestImportOfStandardInputAsJSON(t *testing.T) {
	text, err := os.ReadFile(timedLog(t, 5, 0))
	if err != nil {
		t.Fatal(err)
	}
	code, said, errOut := callWith(string(text), "import", "-", timedFormat, "--out", t.TempDir(), "--json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	var got struct {
		Format int
		Runs   []struct {
			Status   string
			Requests int
			Broken   int `json:"broken_lines"`
			Reason   *string
			Notes    []string
		}
	}
	if err := json.Unmarshal([]byte(said), &got); err != nil || got.Format != 1 || len(got.Runs) != 1 {
		t.Fatalf("%v: %s", err, said)
	}
	if one := got.Runs[0]; one.Status != "complete" || one.Requests != 5 || one.Broken != 0 || one.Reason != nil || len(one.Notes) != 1 {
		t.Errorf("%+v", one)
	}
}

func TestImportRefuses(t *testing.T) {
	for _, row := range []struct {
		why  string
		log  string
		args []string
		code int
		says []string
	}{
		{"a format without durations", timedLog(t, 20, 0), []string{"--format", "COMBINED"}, 2, []string{"no request of the log has a duration", "COMBINED", "$request_time"}},
		{"a log that has too few", timedLog(t, 20, 5), nil, 2, []string{"25 % of the requests have no duration (5 of 20)", "--allow-untimed"}},
		{"not where that is allowed", timedLog(t, 20, 5), []string{"--allow-untimed"}, 0, nil},
		{"nothing that is left", timedLog(t, 20, 0), []string{"--from", "2030-01-01"}, 1, []string{"no request of the log matches"}},
		{
			"all mistakes at once", timedLog(t, 20, 0),
			[]string{"--from", "x", "--include", "(", "--scenario", "a b", "--timeout", "2h", "--target", "http://me:pw@a.example"}, 2,
			[]string{`--from "x"`, "--include", `--scenario "a b"`, "--timeout: 2h0m0s", "--target must be a base URL"},
		},
	} {
		out := filepath.Join(t.TempDir(), "results")
		args := append([]string{"import", row.log, "--out", out, "--quiet", timedFormat}, row.args...)
		code, _, errOut := call(args...)
		if code != row.code {
			t.Errorf("%s: exit %d, want %d: %s", row.why, code, row.code, errOut)
		}
		for _, part := range row.says {
			if !strings.Contains(errOut, part) {
				t.Errorf("%s: it does not say %q: %s", row.why, part, errOut)
			}
		}
		if strings.Contains(errOut, "me:pw") {
			t.Errorf("%s: a password is shown: %s", row.why, errOut)
		}
		if _, err := os.Stat(out); row.code == 2 && err == nil {
			t.Errorf("%s: something is written", row.why)
		}
	}
}
