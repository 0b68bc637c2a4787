package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/cli"
)

// A limit of open files that holds connections back is refused or named, never left for the reader to find.
func TestTheLimitOfOpenFiles(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) }))
	t.Cleanup(server.Close)
	var crowd []string
	for i := range 1500 {
		crowd = append(crowd, logLine(0, "GET /a HTTP/1.1", fmt.Sprint("UA", i)))
	}
	few := crowd[:3]
	rows := []struct {
		why     string
		limit   string // as given to ulimit
		log     []string
		args    []string
		code    int
		says    []string // on standard error; nil: nothing is said
		limited bool
	}{
		{"a soft limit is raised to the hard one", "-S -n 64", few, nil, cli.ExitYes, nil, false},
		{"a few connections are refused", "-n 64", few, nil, cli.ExitUsage,
			[]string{"--max-connections 10000 needs 10064 open files, and this process may have 64;", "ulimit -n 10064", "LimitNOFILE=10064"}, false},
		{"unless a few were asked for", "-n 100", few, []string{"--max-connections", "20"}, cli.ExitYes, nil, false},
		{"and are there", "-n 64", few, []string{"--max-connections", "20"}, cli.ExitUsage, []string{"--max-connections 20 needs 84 open files"}, false},
		{"fewer than asked for are enough for a small log", "-n 400", few, nil, cli.ExitYes, nil, false},
		{"a large log may need them all: a run that waited is flagged", "-n 400", crowd, []string{"--burst"}, cli.ExitYes,
			[]string{"past 336 connections, requests will wait", "of 1500 requests waited for a connection, while the generator could open only 336"}, true},
		{"users need one connection each", "-n 100", few, []string{"--users", "20"}, cli.ExitYes, nil, false},
		{"and are refused without", "-n 100", few, []string{"--users", "50"}, cli.ExitUsage, []string{"--users 50 needs 114 open files"}, false},
		{"so are connections", "-n 100", few, []string{"--speed", "max"}, cli.ExitUsage, []string{"--connections 64 needs 128 open files"}, false},
	}
	for _, row := range rows {
		out := t.TempDir()
		args := append([]string{"-c", `ulimit ` + row.limit + ` && exec "$0" "$@"`, os.Args[0], "run", writeLog(t, row.log...),
			"--target", server.URL, "--out", out, "--quiet"}, row.args...)
		replay := exec.Command("bash", args...)
		replay.Env = append(os.Environ(), asProgram+"=1")
		var errOut bytes.Buffer
		replay.Stderr = &errOut
		_ = replay.Run() // the exit code says more
		if code := replay.ProcessState.ExitCode(); code != row.code || (errOut.Len() == 0) != (row.says == nil) {
			t.Errorf("%s: exit %d, want %d: %s", row.why, code, row.code, &errOut)
		}
		for _, part := range row.says {
			if !strings.Contains(errOut.String(), part) {
				t.Errorf("%s: %q does not say %q", row.why, &errOut, part)
			}
		}
		if row.code != cli.ExitYes {
			continue
		}
		if got := latest(t, out).Run; got.GeneratorLimited != row.limited {
			t.Errorf("%s: run.json says that the generator was the limit: %v, want %v", row.why, got.GeneratorLimited, row.limited)
		}
	}
}
