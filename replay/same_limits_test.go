package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
	"plimsoll/replay/same"
)

// No redirection, link or log line leads to a third server, sets a header, or sends a method that changes a site.
func TestOnlyTheTwoSidesAreAsked(t *testing.T) {
	third := newSite(t)
	var seen atomic.Pointer[http.Request]
	baseline, candidate := twoSites(t, func(w http.ResponseWriter, r request) {
		if r.Host != strings.TrimPrefix(r.own, "http://") || r.Method != http.MethodGet {
			seen.Store(r.Request)
		}
		for name := range r.Header {
			if name != "Accept" && name != "Accept-Encoding" && name != "User-Agent" {
				seen.Store(r.Request)
			}
		}
		w.Header().Set("Location", third.URL+"/next")
		w.WriteHeader(http.StatusFound)
	})
	log := writeLog(t,
		logLine(0, "GET /a HTTP/1.1", "UA"), logLine(1, "POST /b HTTP/1.1", "UA"),
		logLine(2, "GET "+third.URL+"/c HTTP/1.1", "UA"), logLine(3, "GET //"+strings.TrimPrefix(third.URL, "http://")+"/d HTTP/1.1", "UA"),
		logLine(4, `GET /e\r\nX-Evil:1 HTTP/1.1`, "UA"), logLine(5, "HEAD /f HTTP/1.1", "UA"),
		logLine(6, "GET /a HTTP/1.1", "UA"), logLine(7, "GET ftp://"+strings.TrimPrefix(third.URL, "http://")+"/g HTTP/1.1", "UA"),
	)
	code, out, errOut := call("same", log, "--baseline", baseline, "--candidate", candidate, "--out", t.TempDir(), "--json", "--allow-rejects")
	result := &same.Result{}
	if err := json.Unmarshal([]byte(out), result); err != nil {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	if code != cli.ExitUnknown || !strings.Contains(result.Says, "not one page has a status of 200") {
		t.Errorf("exit %d: %s", code, result.Says)
	}
	if result.Pages.Total != 3 || result.Chosen.LeftOut[same.LeftTarget] != 1 || result.Chosen.LeftOut[same.LeftMethod] == 0 {
		t.Errorf("%+v, %+v", result.Pages, result.Chosen)
	}
	if r := seen.Load(); r != nil {
		t.Errorf("%s %s at %s with %v", r.Method, r.RequestURI, r.Host, r.Header)
	}
	if got := third.requests(); len(got) > 0 {
		t.Errorf("the third server got %v", got)
	}
}

func TestWrongUseOfSame(t *testing.T) {
	a := newSite(t)
	log := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	rows := []struct {
		why   string
		flags []string
		says  string
	}{
		{"one site twice", []string{"--baseline", a.URL, "--candidate", a.URL}, "are the same site"},
		{"nobody there", []string{"--baseline", a.URL, "--candidate", "http://127.0.0.1:1"}, "--candidate: target: 127.0.0.1:1 refuses connections"},
		{"a path", []string{"--baseline", a.URL + "/shop", "--candidate", a.URL}, "--baseline: target"},
		{"no candidate", []string{"--baseline", a.URL}, "--candidate"},
		{"a share over 1", []string{"--baseline", a.URL, "--candidate", a.URL, "--sample", "2"}, "--sample: 2 is out of range"},
		{"no expression", []string{"--baseline", a.URL, "--candidate", a.URL, "--ignore", "("}, "--ignore"},
		{"an expression for nothing", []string{"--baseline", a.URL, "--candidate", a.URL, "--ignore", "x*"}, "matches nothing at all"},
		{"a secret on the command line", []string{"--baseline", a.URL, "--candidate", a.URL, "--header", "Cookie: s=1"}, "--header-file"},
		{"a range", []string{"--baseline", a.URL, "--candidate", a.URL, "--header", "Range: bytes=0-1"}, "leave it out"},
	}
	for _, row := range rows {
		code, _, errOut := call(append([]string{"same", log, "--out", t.TempDir()}, row.flags...)...)
		if code != cli.ExitUsage || !strings.Contains(errOut, row.says) {
			t.Errorf("%s: exit %d: %s", row.why, code, errOut)
		}
	}
}

// A side that dies ends the comparison, with what was found until then.
func TestASideThatDies(t *testing.T) {
	baseline, _ := twoSites(t, func(w http.ResponseWriter, _ request) { write(w, article) })
	var targets []string
	for i := range 300 {
		targets = append(targets, fmt.Sprintf("/p%d", i))
	}
	candidate := ""
	var answered atomic.Int64
	var dying *httptest.Server
	dying = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, article)
		if answered.Add(1) == 40 {
			go dying.Listener.Close()
		}
		if answered.Load() >= 40 {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(dying.Close)
	candidate = dying.URL
	code, result, _ := compared(t, baseline, candidate, targets)
	if code == cli.ExitYes || result.Status != "failed" || result.Pages.Same == 0 || result.Pages.Unseen < 200 {
		t.Errorf("exit %d, %s: %+v", code, result.Status, result.Pages)
	}
	if result.Reason == nil || !strings.Contains(*result.Reason, "the candidate gave no answer to 20 requests in a row") {
		t.Errorf("%v", result.Reason)
	}
}

// What a site says harms no terminal, and secrets of queries are not kept.
func TestTheTextIsHarmless(t *testing.T) {
	baseline, candidate := twoSites(t, func(w http.ResponseWriter, r request) {
		write(w, "one two three \x1b]0;%d\x07 \u202e five six <script>", r.side)
	})
	out := t.TempDir()
	log := writeLog(t, logLine(0, "GET /?token=hunter2 HTTP/1.1", "UA"))
	code, text, _ := call("same", log, "--baseline", baseline, "--candidate", candidate, "--out", out, "--quiet")
	found, _ := filepath.Glob(filepath.Join(out, "*", "*"))
	all := text
	for _, path := range found {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(path) == ".txt" {
			text += string(content)
		}
		all += string(content)
	}
	if code != cli.ExitNo || len(found) != 3 || strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Contains(all, "hunter2") {
		t.Errorf("exit %d: %q", code, all)
	}
}

// Ctrl-C ends a comparison in good order: what was seen is written, and nobody is told that the sites are the same.
func TestASignalEndsAComparison(t *testing.T) {
	var asked atomic.Int64
	baseline, candidate := twoSites(t, func(w http.ResponseWriter, _ request) {
		asked.Add(1)
		write(w, article)
	})
	var lines []string
	for i := range 200 {
		lines = append(lines, logLine(i, fmt.Sprintf("GET /%d HTTP/1.1", i), "UA"))
	}
	out := t.TempDir()
	program := exec.Command(os.Args[0], "same", writeLog(t, lines...), "--baseline", baseline, "--candidate", candidate,
		"--out", out, "--quiet", "--rate", "20")
	program.Env = append(os.Environ(), asProgram+"=1")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	for asked.Load() < 8 {
		time.Sleep(10 * time.Millisecond)
	}
	result := &same.Result{}
	if read(t, out, result); result.Status != record.Running || result.Verdict != same.VerdictInconclusive {
		t.Errorf("before its end it says %s, %s", result.Status, result.Verdict)
	}
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := program.Wait(); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitUnknown {
		t.Errorf("it ended with %v", err)
	}
	read(t, out, result)
	if result.Status != record.Interrupted || result.Pages.Same == 0 || result.Pages.Unseen == 0 || result.Verdict != same.VerdictInconclusive {
		t.Errorf("%s, %s: %+v", result.Status, result.Verdict, result.Pages)
	}
}

// read reads the only result in a folder.
func read(t *testing.T, out string, result *same.Result) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(out, "*", same.ResultFile))
	if len(found) != 1 {
		t.Fatalf("results: %v", found)
	}
	text, err := os.ReadFile(found[0])
	if err == nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhichPagesAreCompared(t *testing.T) {
	var targets []string
	for i := range 40_000 {
		targets = append(targets, fmt.Sprintf("/p%d", i%20_000))
	}
	rows := []struct {
		why   string
		flags []string
		pages func(n uint64) bool
		left  string // a reason why others are not
	}{
		{"at most so many", []string{"--limit", "10"}, func(n uint64) bool { return n == 10 }, same.LeftLimit},
		{"a share of them", []string{"--sample", "0.001"}, func(n uint64) bool { return n > 2 && n < 60 }, same.LeftSample},
		{"those that match", []string{"--include", "^/p1.$", "--exclude", "5$"}, func(n uint64) bool { return n == 9 }, same.LeftFilter},
		{"as many as are remembered", []string{"--max-targets", "12"}, func(n uint64) bool { return n == 12 }, same.LeftTargets},
	}
	baseline, candidate := twoSites(t, func(w http.ResponseWriter, _ request) { write(w, article) })
	for _, row := range rows {
		_, result, _ := compared(t, baseline, candidate, targets, row.flags...)
		p := result.Pages
		if !row.pages(p.Total) || p.Same != p.Total || result.Chosen.LeftOut[row.left] == 0 || result.Chosen.Requests != 40_000 {
			t.Errorf("%s: %+v, %+v", row.why, p, result.Chosen)
		}
	}
}

// Two servers under one name, over TLS, behind a cookie: each is asked at its address, and the cookie is nowhere kept.
func TestOneNameAtTwoAddresses(t *testing.T) {
	var strangers atomic.Int64
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "shop.example" || r.Header.Get("Cookie") != "member=hunter2" || r.Header.Get("Authorization") != "Basic "+r.Header.Get("X-Side")+"hunter2" {
			strangers.Add(1)
		}
		write(w, `%s<a href="https://shop.example/">`, article)
	}
	baseline, candidate := httptest.NewTLSServer(http.HandlerFunc(serve)), httptest.NewTLSServer(http.HandlerFunc(serve))
	t.Cleanup(baseline.Close)
	t.Cleanup(candidate.Close)
	secrets := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(secrets, []byte("Cookie: member=hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var own [2]string
	for i := range own {
		own[i] = filepath.Join(t.TempDir(), "own")
		if err := os.WriteFile(own[i], fmt.Appendf(nil, "X-Side: %d\nAuthorization: Basic %dhunter2\n", i, i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	code, text, errOut := call("same", writeLog(t, logLine(0, "GET / HTTP/1.1", "UA")), "--insecure",
		"--baseline-header-file", own[0], "--candidate-header-file", own[1], "--header-file", secrets, "--out", out,
		"--baseline", "https://shop.example", "--baseline-connect-to", baseline.Listener.Addr().String(),
		"--candidate", "https://shop.example", "--candidate-connect-to", candidate.Listener.Addr().String())
	if code != cli.ExitYes || strangers.Load() != 0 || !strings.Contains(text, "https://shop.example at 127.0.0.1:") {
		t.Errorf("exit %d, %d strangers: %s%s", code, strangers.Load(), text, errOut)
	}
	kept, err := filepath.Glob(filepath.Join(out, "*", "*"))
	if err != nil || len(kept) != 3 {
		t.Fatalf("%v %v", kept, err)
	}
	for _, path := range kept {
		if content, _ := os.ReadFile(path); strings.Contains(string(content), "hunter2") {
			t.Errorf("%s holds the cookie", path)
		}
	}
}
