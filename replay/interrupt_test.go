package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
)

// A signal ends a replay in good order: what was sent is recorded, and the run says that it was interrupted.
func TestASignalEndsTheRun(t *testing.T) {
	var lines []string
	for second := range 100 {
		lines = append(lines, logLine(second, fmt.Sprintf("GET /%d HTTP/1.1", second), "UA"))
	}
	log := writeLog(t, lines...)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup, where a run goes on
		signals = append(signals, syscall.SIGHUP)
	}
	for _, sent := range signals {
		server := newSite(t)
		out := t.TempDir()
		replay := exec.Command(os.Args[0], "run", log, "--target", server.URL, "--out", out, "--quiet", "--rate", "1")
		replay.Env = append(os.Environ(), asProgram+"=1")
		if err := replay.Start(); err != nil {
			t.Fatal(err)
		}
		for len(server.requests()) == 0 && replay.ProcessState == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err := replay.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := replay.Wait(); !errors.As(err, &exit) || exit.ExitCode() != run.ExitNo {
			t.Errorf("%v: it ended with %v", sent, err)
		}
		run, err := record.OpenRun(filepath.Join(out, "latest"))
		if err != nil {
			t.Fatal(err)
		}
		if run.Run.Status != record.Interrupted || run.Summary == nil || run.Len() == 0 {
			t.Errorf("%v: %s with %d records, summary %v", sent, run.Run.Status, run.Len(), run.Summary)
		}
		run.Close()
	}
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
