package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

// moment is a point of a run at which it gets a signal.
type moment struct {
	says  string
	begin func(t *testing.T, one *replayProcess, how pace) // starts the replay, and returns when the moment has come
}

// pace is how a replay sends. Its connections are four at most, so that a silent server is soon sent no more.
type pace struct {
	says        string
	args        string // D stands for how long it lasts
	proto       string
	tls, noRest bool // noRest: the rest of its plan has no end
}

var paces = []pace{
	{says: "open", args: "--speed 1"},
	{says: "a rate", args: "--rate 200 --loops 9"},
	{says: "a rate without end", args: "--rate 200 --loops 0 --duration D"},
	{says: "max", args: "--speed max --connections 4 --loops 1000"},
	{says: "max without end", args: "--speed max --connections 4 --loops 0 --duration D", noRest: true},
	{says: "users", args: "--users 4 --ramp-up 10ms --duration D --speed 100"},
	{says: "TLS", args: "--rate 200 --loops 9 --insecure", tls: true},
	{says: "HTTP/2", args: "--rate 200 --loops 9 --insecure", tls: true, proto: "HTTP/2.0"},
}

// Moments of every pace.
var everyMoment = []moment{
	{"under load", func(t *testing.T, one *replayProcess, how pace) {
		one.start(t, nil, pacedLog(t, how, 3000), strings.ReplaceAll(how.args, "D", "1h"))
		one.sees(t, 20)
	}},
	{"a silent server", func(t *testing.T, one *replayProcess, how pace) {
		one.silent.Store(true)
		one.start(t, nil, pacedLog(t, how, 3000), strings.ReplaceAll(how.args, "D", "1h"))
		one.sees(t, 4)
	}},
	{"what is in flight at its end", func(t *testing.T, one *replayProcess, how pace) {
		one.silent.Store(true)
		one.start(t, nil, pacedLog(t, how, 4), strings.NewReplacer("--loops 9", "", "--loops 1000", "", "D", "1s").Replace(how.args))
		one.sees(t, 4)
		if strings.Contains(how.args, "D") {
			time.Sleep(time.Second) // what its --duration is, counted from before the fourth request
		}
	}},
}

// A signal ends a replay of any pace at any moment in good order: what was sent is recorded, and the run says that it
// was interrupted. How long that took is printed, and not judged.
func TestASignalEndsTheRun(t *testing.T) {
	turn := 0
	each := func(name string, begin func(t *testing.T, one *replayProcess), check func(t *testing.T, one *replayProcess)) {
		signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
		if os.Getenv("PLIMSOLL_ALL_SIGNALS") == "" {
			signals = signals[turn%3 : turn%3+1]
		}
		turn++
		for _, sent := range signals {
			t.Run(fmt.Sprintf("%s/%v", name, sent), func(t *testing.T) {
				t.Parallel()
				one := newReplayProcess(t)
				begin(t, one)
				one.end(t, sent)
				check(t, one)
			})
		}
	}
	t.Run("all", func(t *testing.T) {
		for _, at := range everyMoment {
			for _, how := range paces {
				each(how.says+", "+at.says, func(t *testing.T, one *replayProcess) {
					if how.tls {
						one.overTLS()
					}
					at.begin(t, one, how)
				}, func(t *testing.T, one *replayProcess) {
					one.isInterrupted(t, how.noRest && at.says != everyMoment[2].says)
				})
			}
		}
		for _, at := range otherMoments {
			each(at.says, func(t *testing.T, one *replayProcess) { at.begin(t, one, pace{}) }, func(*testing.T, *replayProcess) {})
		}
	})
}

// Moments of one pace, or before a run has begun.
var otherMoments = []moment{
	{"users arrive", func(t *testing.T, one *replayProcess, how pace) {
		one.start(t, nil, pacedLog(t, how, 3000), "--users 1000 --ramp-up 1m")
		one.sees(t, 1)
	}},
	{"standard input stays open", func(t *testing.T, one *replayProcess, _ pace) {
		in, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = in.Close(), writer.Close() })
		one.start(t, func(replay *exec.Cmd) { replay.Stdin = in }, "-", "")
		spooled := func() bool {
			found, _ := filepath.Glob(filepath.Join(one.temp, "plimsoll-stdin-*"))
			return len(found) == 1
		}
		one.await(t, spooled)
		t.Cleanup(func() {
			if spooled() {
				t.Error("the copy of standard input is left")
			}
		})
	}},
	{"a pipe into which nobody writes", func(t *testing.T, one *replayProcess, _ pace) {
		path := filepath.Join(one.temp, "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		one.start(t, nil, path, "")
		writer, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = writer.Close() })
	}},
	{"a silent login page", func(t *testing.T, one *replayProcess, how pace) {
		one.silent.Store(true)
		one.start(t, nil, pacedLog(t, how, 9), "--members-share 1 --accounts "+accountsFile(t, 1))
		one.sees(t, 1)
	}},
	{"nobody reads the summary", func(t *testing.T, one *replayProcess, how pace) {
		out, full, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = out.Close(), full.Close() })
		_ = full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		for err == nil { // until it takes no more
			_, err = full.Write(make([]byte, 1<<16))
		}
		one.start(t, func(replay *exec.Cmd) { replay.Stdout = full }, pacedLog(t, how, 3), "--speed max")
		one.await(t, func() bool {
			run, err := record.OpenRun(filepath.Join(one.out, "latest"))
			if err != nil {
				return false
			}
			defer run.Close()
			return run.Run.Status == record.Complete
		})
	}},
	{"a large log is counted", func(t *testing.T, one *replayProcess, _ pace) {
		log := largeLog(t)
		one.start(t, nil, log, "")
		one.await(t, func() bool { // it is open
			files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", one.replay.Process.Pid))
			return slices.ContainsFunc(files, func(file string) bool {
				path, _ := os.Readlink(file)
				return path == log
			})
		})
	}},
}

// replayProcess is a replay that a signal ends, and the server that it sends to.
type replayProcess struct {
	replay    *exec.Cmd
	server    *httptest.Server
	silent    atomic.Bool
	seen      atomic.Int64
	ended     chan error
	out, temp string
}

func newReplayProcess(t *testing.T) *replayProcess {
	one := &replayProcess{out: t.TempDir(), temp: t.TempDir(), ended: make(chan error, 1)}
	over := make(chan struct{})
	one.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.seen.Add(1)
		if one.silent.Load() {
			<-over
		}
	}))
	one.server.Config.ErrorLog = log.New(io.Discard, "", 0) // a replay that ends hangs up
	t.Cleanup(func() {
		close(over)
		one.server.Close()
	})
	return one
}

func (one *replayProcess) overTLS() {
	one.server.EnableHTTP2 = true
	one.server.StartTLS()
}

// start starts a replay, on which change has the last word.
func (one *replayProcess) start(t *testing.T, change func(*exec.Cmd), log, flags string) {
	if one.server.URL == "" {
		one.server.Start()
	}
	args := []string{"run", log, "--target", one.server.URL, "--out", one.out, "--quiet", "--timeout", "10m"}
	args = append([]string{"--default-signal=HUP,INT", os.Args[0]}, args...) // which the tests may have been begun without
	one.replay = exec.Command("env", append(args, strings.Fields(flags)...)...)
	one.replay.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+one.temp)
	one.replay.Stderr = new(strings.Builder)
	if change != nil {
		change(one.replay)
	}
	if err := one.replay.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { one.ended <- one.replay.Wait() }()
	t.Cleanup(func() { _ = one.replay.Process.Kill() })
}

// await waits until something is so.
func (one *replayProcess) await(t *testing.T, isSo func() bool) {
	t.Helper()
	for !isSo() {
		select {
		case err := <-one.ended:
			t.Fatalf("it ended before: %v: %s", err, one.replay.Stderr)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sees waits until the server has got so many requests.
func (one *replayProcess) sees(t *testing.T, requests int64) {
	t.Helper()
	one.await(t, func() bool { return one.seen.Load() >= requests })
}

// end sends a signal, waits for the end, and says how long that took.
func (one *replayProcess) end(t *testing.T, sent syscall.Signal) {
	t.Helper()
	began := time.Now()
	if err := one.replay.Process.Signal(sent); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	select {
	case err := <-one.ended:
		t.Logf("it ended after %.2f s", time.Since(began).Seconds())
		if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitNo {
			t.Errorf("it ended with %v: %s", err, one.replay.Stderr)
		}
	case <-time.After(time.Minute):
		t.Fatal("it did not end within a minute")
	}
}

// isInterrupted checks what a run says that was sending.
func (one *replayProcess) isInterrupted(t *testing.T, noRest bool) {
	t.Helper()
	got := latest(t, one.out)
	if got.Run.Status != record.Interrupted || got.Summary == nil || got.Len() == 0 {
		t.Fatalf("%s with %d records, summary %v", got.Run.Status, got.Len(), got.Summary)
	}
	if p := got.Run.Process; p == nil || p.PID != one.replay.Process.Pid || p.Start == 0 || p.Boot == "" || p.Namespace == 0 {
		t.Errorf("its process is %+v", p)
	}
	if s, cores := got.Run.Sender, max(1, runtime.NumCPU()/2); s == nil || !s.BesideServer || s.Cores != cores ||
		s.Threads < 1 || s.Threads > cores || s.Nice != 0 {
		t.Errorf("beside the server on loopback, it was sent by %+v", s)
	}
	n := got.Summary.Requests
	if (n.Unsent == nil) != (n.Total == nil) || noRest && n.Unsent != nil {
		t.Errorf("%+v", n)
	}
	if says := strings.Contains(*got.Run.Reason, "an unknown number of requests unsent"); says != (n.Unsent == nil) {
		t.Errorf("it says %s", *got.Run.Reason)
	}
}

// pacedLog is a log whose first thirty requests are of one second.
func pacedLog(t *testing.T, how pace, requests int) string {
	var lines []string
	for i := range requests {
		lines = append(lines, logLine(max(0, i-30), fmt.Sprintf("GET /%d %s", i, cmp.Or(how.proto, "HTTP/1.1")), fmt.Sprint("UA", i%4)))
	}
	return writeLog(t, lines...)
}

// largeLog is a log of 2 GB, packed.
func largeLog(t *testing.T) string {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	for range 10_000 {
		_, _ = io.WriteString(writer, logLine(0, "GET / HTTP/1.1", "UA"))
	}
	_ = writer.Close()
	path := filepath.Join(t.TempDir(), "access.log.gz")
	if err := os.WriteFile(path, bytes.Repeat(packed.Bytes(), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A run under nohup outlives the terminal that it was started in.
func TestNohupKeepsARunGoing(t *testing.T) {
	var lines []string
	for second := range 30 {
		lines = append(lines, logLine(second, fmt.Sprintf("GET /%d HTTP/1.1", second), "UA"))
	}
	server := newSite(t)
	out := t.TempDir()
	replay := exec.Command("nohup", os.Args[0], "run", writeLog(t, lines...), "--target", server.URL, "--out", out, "--quiet", "--rate", "30")
	replay.Env = append(os.Environ(), asProgram+"=1")
	if err := replay.Start(); err != nil {
		t.Fatal(err)
	}
	for len(server.requests()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := replay.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := replay.Wait(); err != nil {
		t.Errorf("the hang-up ended it: %v", err)
	}
	if ended := latest(t, out); ended.Run.Status != record.Complete || int(ended.Len()) != len(lines) {
		t.Errorf("%s with %d of %d records", ended.Run.Status, ended.Len(), len(lines))
	}
}
