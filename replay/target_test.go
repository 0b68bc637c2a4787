package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

// mortal is a server that is killed when it has answered so many requests, with all its connections, and comes back at
// the same address after a pause; 0: it never does.
func mortal(t *testing.T, answers int64, pause time.Duration) string {
	t.Helper()
	var answered atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	var first *http.Server
	var handler http.HandlerFunc
	handler = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
		if answered.Add(1) != answers {
			return
		}
		go func() {
			_ = first.Close()
			if pause == 0 {
				return
			}
			time.Sleep(pause)
			again, err := net.Listen("tcp", address)
			if err != nil {
				t.Errorf("it did not come back: %v", err)
				return
			}
			second := &http.Server{Handler: handler}
			t.Cleanup(func() { _ = second.Close() })
			_ = second.Serve(again)
		}()
	}
	first = &http.Server{Handler: handler}
	t.Cleanup(func() { _ = first.Close() })
	go func() { _ = first.Serve(listener) }()
	return "http://" + address
}

func TestARunWhoseTargetIsKilledHasFailed(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, logLine(i, "GET / HTTP/1.1", "UA"))
	}
	for _, c := range []struct {
		why    string
		pause  time.Duration
		code   int
		status record.Status
		reason string
	}{
		{"it is killed midway", 0, cli.ExitNo, record.Failed, "the target gave no answer after "},
		{"it is killed, and comes back", time.Second, cli.ExitYes, record.Complete, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			code, table, errOut := call("run", writeLog(t, lines...), "--target", mortal(t, 40, c.pause), "--out", out, "--quiet", "--rate", "20")
			ended := latest(t, out)
			reason := ""
			if ended.Run.Reason != nil {
				reason = *ended.Run.Reason
			}
			if code != c.code || ended.Run.Status != c.status || !strings.HasPrefix(reason, c.reason) || !strings.Contains(errOut, reason) {
				t.Errorf("exit %d, %s: %s\n%s", code, ended.Run.Status, reason, errOut)
			}
			if ended.Summary.Requests.Errors == 0 || ended.Summary.Response.Max != nil || !strings.Contains(table, "≥ 30 s") {
				t.Errorf("requests that were refused count as fast: %s\n%s", fmt.Sprint(ended.Summary.Response.Censored), table)
			}
		})
	}
}
