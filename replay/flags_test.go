package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/replay/cli"
)

// senseless are flags that make no sense. FILE is one, and LINK one that leads nowhere.
var senseless = []struct {
	why, args, says string
}{
	{"a rate of nothing", "--rate 0", "--rate: 0 is out of range, give 0.0001 to 1000000 requests a second"},
	{"a rate backwards", "--rate=-5", "--rate: -5 is out of range"},
	{"a rate that is not a number", "--rate NaN", "--rate: NaN is out of range"},
	{"a rate without end", "--rate Inf", "--rate: +Inf is out of range"},
	{"a rate of one a century", "--rate 1e-10", "--rate: 1e-10 is out of range"},
	{"a speed that overflows", "--speed 1e-300", `--speed "1e-300": give a number from 0.0001 to 1000000`},
	{"a speed that is all at once", "--speed 1e7", "--speed"},
	{"a speed without end", "--speed Inf", "--speed"},
	{"a speed that is not a number", "--speed NaN", "--speed"},
	{"no users", "--users 0", "--users: 0 is out of range, give at least 1"},
	{"fewer than no users", "--users=-1", "--users: -1 is out of range"},
	{"no connections", "--speed max --connections 0", "--connections: 0 is out of range"},
	{"no connections at all", "--max-connections 0", "--max-connections: 0 is out of range"},
	{"no requests", "--limit 0", "--limit: 0 is out of range, give at least 1"},
	{"fewer than no requests", "--limit=-1", "--limit: -1 is out of range"},
	{"no time", "--duration 0", "--duration: 0 is out of range, give at least 0.001 seconds"},
	{"time backwards", "--duration=-1s", "--duration: -1 is out of range"},
	{"fewer than no loops", "--loops=-1", "--loops: -1 is out of range"},
	{"loops without end", "--loops 0", "--loops 0 never ends: give --duration too"},
	{"a warm-up backwards", "--warmup=-1s", "--warmup: -1 is out of range"},
	{"a warm-up that is all there is", "--warmup 2m --duration 1m", "--warmup 2m0s leaves nothing of --duration 1m0s"},
	{"no time to answer", "--timeout 0", "--timeout: 0 is out of range, give 0.001 to 3600 seconds"},
	{"longer than a record can hold", "--timeout 2h", "--timeout: 7200 is out of range"},
	{"no time to be idle", "--idle-timeout 0", "--idle-timeout: 0 is out of range"},
	{"a limit of no figure", "--fail-over p98=1s", `--fail-over "p98=1s": "p98" is not a figure`},
	{"a limit beyond the time-out", "--fail-over p99=45s", `--fail-over "p99=45s": a request that takes 30s has failed`},
	{"to end a run that has no limits", "--abort-on-fail", "--abort-on-fail needs a limit"},
	{"grace without an end", "--abort-after 5s", "--abort-after is only for --abort-on-fail"},
	{"a grace backwards", "--fail-over p99=1s --abort-on-fail --abort-after=-5s", "--abort-after: -5 is out of range"},
	{"users without number of requests", "--users 5 --fail-over p99=1s --abort-on-fail", "--abort-on-fail needs a run that has so many requests at most"},
	{"loops without one", "--loops 0 --duration 9s --fail-over p99=1s --abort-on-fail", "--abort-on-fail needs a run that has so many requests at most"},
	{"figures for all the world", "--metrics :9464", `--metrics ":9464" can be reached by other machines`},
	{"figures nowhere", "--metrics=", "--metrics is empty: give an address"},
	{"other machines, without figures", "--metrics-remote", "--metrics-remote is only for --metrics"},
	{"a repeat before the first", "--repeat 0", "--repeat: 0 is out of range"},
	{"two paces", "--speed max --rate 5", "--rate and --speed cannot be combined"},
	{"a pace for users", "--users 5 --rate 5", "--rate and --users cannot be combined"},
	{"as fast as it goes, for users", "--users 5 --speed max", "--speed and --users cannot be combined"},
	{"connections without a closed loop", "--connections 5", "--connections is only for --speed max"},
	{"users who arrive, without users", "--ramp-up 5s", "--ramp-up is only for --users"},
	{"users who leave before they come", "--users 5 --ramp-up=-5s", "--ramp-up: -5 is out of range"},
	{"a method that is none", "--methods FOO*BAR", `--methods: "FOO*BAR" is not a method`},
	{"no method", "--methods GET,,HEAD", `--methods: "" is not a method`},
	{"an address without a target", "--connect-to 127.0.0.1:1", "--connect-to needs --target"},
	{"a target that is empty", "--target=", "is not a base URL"},
	{"a target that is none", "--target nowhere", "is not a base URL"},
	{"a port that is none", "--target http://127.0.0.1:99999", "is not a port"},
	{"an output folder that is a file", "--out FILE", "--out FILE: FILE is not a folder"},
	{"an output folder in a file", "--out FILE/x", "--out FILE/x: "},
	{"an output folder that leads nowhere", "--out LINK/x", "the link LINK leads nowhere"},
	{"an output folder without a name", "--out=", "--out is empty"},
}

// TestFlagsThatMakeNoSense: each is refused before anything is read or sent, and so are all of them together.
func TestFlagsThatMakeNoSense(t *testing.T) {
	log := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	folder := t.TempDir()
	file, nowhere := filepath.Join(folder, "file"), filepath.Join(folder, "nowhere")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(folder, "gone"), nowhere); err != nil {
		t.Fatal(err)
	}
	places := strings.NewReplacer("FILE", file, "LINK", nowhere)
	for _, row := range senseless {
		row.args, row.says = places.Replace(row.args), places.Replace(row.says)
		code, _, errOut := call(append([]string{"run", log, "--quiet", "--out", filepath.Join(folder, "results")}, strings.Fields(row.args)...)...)
		if code != cli.ExitUsage || !strings.Contains(errOut, row.says) || strings.Contains(errOut, "--root") {
			t.Errorf("%s: exit %d: %s, want %q", row.why, code, errOut, row.says)
		}
		if strings.Count(strings.TrimSpace(errOut), "\n") > 0 {
			t.Errorf("%s: says more than one thing: %s", row.why, errOut)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "results")); err == nil {
		t.Error("something was written")
	}
	checkAllAtOnce(t, log)
}

func checkAllAtOnce(t *testing.T, log string) {
	t.Helper()
	args := "--rate 0 --speed 0 --users 0 --connections 0 --max-connections 0 --limit=-1 --duration=-1s --loops=-1 --warmup=-1s " +
		"--ramp-up=-1s --timeout 0 --idle-timeout 0 --repeat 0 --backend= --methods F* --target x --out= --from x --include ( --route x --header x --fail-over p98=1s"
	_, _, errOut := call(append([]string{"run", log, "--quiet"}, strings.Fields(args)...)...)
	for word := range strings.FieldsSeq(args) {
		if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "--") && !strings.Contains(errOut, strings.TrimPrefix(flag, "--")) {
			t.Errorf("%s is not named: %s", flag, errOut)
		}
	}
}
