package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/replay/cli"
)

// freeAddress returns an address on loopback that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	// No test connects from this address, so none can take the port meanwhile.
	listener, err := net.Listen("tcp", "127.77.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestFiguresAreShownWhileARunLasts: the site itself scrapes, in the middle of the run and until the first requests are
// counted, and so holds the run up until they are.
func TestFiguresAreShownWhileARunLasts(t *testing.T) {
	address := freeAddress(t)
	scraped := make(chan string, 1)
	site := newSite(t)
	handler := site.Config.Handler
	site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.URL.Path == "/9" && len(scraped) == 0 {
			response, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				break
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if strings.Contains(string(body), "plimsoll_requests_total{") {
				scraped <- string(body)
			}
		}
		handler.ServeHTTP(w, r)
	})
	var lines []string
	for i := range 10 {
		lines = append(lines, logLine(i, fmt.Sprintf("GET /%d HTTP/1.1", i), "UA"))
	}
	code, _, errOut := call("run", writeLog(t, lines...), "--target", site.URL, "--out", t.TempDir(), "--rate", "20", "--metrics", address)
	if code != 0 || len(scraped) == 0 || !strings.Contains(errOut, "live figures: http://"+address+"/metrics\n") {
		t.Fatalf("exit %d, %d scrapes: %s", code, len(scraped), errOut)
	}
	body := <-scraped
	for _, part := range []string{`plimsoll_requests_total{route="page",status="200"} `, "plimsoll_response_seconds_count ", "plimsoll_lag_seconds_bucket{", `target="` + site.URL + `"`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not shown:\n%s", part, body)
		}
	}
	if listener, err := net.Listen("tcp", address); err != nil {
		t.Errorf("the port is not given back: %v", err)
	} else {
		_ = listener.Close()
	}
}

func TestAPortThatIsTakenIsRefusedBeforeAnythingIsSent(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	site, out := newSite(t), filepath.Join(t.TempDir(), "results")
	code, _, errOut := call("run", writeLog(t, logLine(0, "GET / HTTP/1.1", "UA")), "--target", site.URL, "--out", out, "--metrics", taken.Addr().String())
	if want := "--metrics " + taken.Addr().String() + " is in use by another program: stop that one, or choose another port"; code != cli.ExitUsage || !strings.Contains(errOut, want) {
		t.Errorf("exit %d: %s, want %q", code, errOut, want)
	}
	if _, err := os.Stat(out); err == nil || len(site.requests()) > 0 {
		t.Error("something was written or sent")
	}
}
