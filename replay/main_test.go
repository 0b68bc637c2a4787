package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

// asProgram makes a process of the test binary behave as bin/replay, for tests that need one: the embedded origin, kill
// -9.
const asProgram = "PLIMSOLL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		os.Exit(runMain(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Name: "replay"}))
	}
	os.Exit(m.Run())
}

// call runs a command line in this process.
func call(args ...string) (code int, out, errOut string) {
	return callWith("", args...)
}

func callWith(in string, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = runMain(args, cli.Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr, Name: "replay"})
	return code, stdout.String(), stderr.String()
}

// site is a server that notes the requests it got.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprintf("%s %s %s|%s|%s",
			r.Method, r.RequestURI, r.Host, r.UserAgent(), r.Referer()))
		s.mu.Unlock()
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(s.Close)
	return s
}

// requests are those that the server got.
func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// logLine is a line of a COMBINED log, so many seconds after ten o'clock.
func logLine(second int, request, agent string) string {
	return fmt.Sprintf("192.0.2.%d - - [20/Nov/2026:10:%02d:%02d +0000] \"%s\" 200 5 \"-\" \"%s\"\n",
		second%200+1, second/60, second%60, request, agent)
}

func writeLog(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// latest reads the run directory that a replay left.
func latest(t *testing.T, out string) *record.Reader {
	t.Helper()
	run, err := record.OpenRun(filepath.Join(out, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close() })
	return run
}
