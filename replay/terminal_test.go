package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/replay/cli"
)

func TestWhatIsPrintedCannotHarmATerminal(t *testing.T) {
	const evil = "\x1b]0;evil\x07\u202e\u009b"
	folder := t.TempDir()
	log := filepath.Join(folder, "a"+evil+".log")
	if err := os.WriteFile(log, []byte(strings.Repeat(parsedLine, 20)+"nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	target := newSite(t).URL
	for _, c := range []struct {
		why  string
		args []string
		code int
	}{
		{"a log that is not there", []string{"run", "x" + evil, "--out", folder}, cli.ExitUsage},
		{"a log that is rejected", []string{"run", log, "--format", "W3C", "--target", target, "--out", folder}, cli.ExitUsage},
		{"rejected lines", []string{"parse", "--stats", log}, cli.ExitYes},
		{"a word too many", []string{"parse", log, "--" + evil}, cli.ExitUsage},
		{"no command", []string{evil}, cli.ExitUsage},
		{"the value of a flag", []string{"run", log, "--methods", evil, "--speed", evil, "--target", evil, "--route", evil, "--out", folder}, cli.ExitUsage},
		{"the output folder", []string{"run", log, "--target", target, "--out", filepath.Join(folder, evil), "--quiet"}, cli.ExitYes},
		{"the folder of the origin", []string{"origin", "--log", log, "--root", filepath.Join(log, evil)}, cli.ExitUsage},
	} {
		code, out, errOut := call(c.args...)
		if shown := out + errOut; code != c.code || strings.ContainsAny(shown, "\x1b\x07\u202e\u009b") {
			t.Errorf("%s: exit %d, shows %q", c.why, code, shown)
		}
	}
}
