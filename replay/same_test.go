package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
	"plimsoll/replay/same"
)

// request is one that a side got: which side (0 the baseline), its how manieth, and the side's own address.
type request struct {
	*http.Request
	side int
	n    int64
	own  string
}

// twoSites serves two sites by one function, and returns their addresses.
func twoSites(t *testing.T, serve func(w http.ResponseWriter, r request)) (baseline, candidate string) {
	t.Helper()
	var urls [2]string
	for side := range urls {
		var count atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serve(w, request{r, side, count.Add(1), "http://" + r.Host})
		}))
		t.Cleanup(server.Close)
		urls[side] = server.URL
	}
	return urls[0], urls[1]
}

// compared runs `replay same` over a log of these targets.
func compared(t *testing.T, baseline, candidate string, targets []string, flags ...string) (int, *same.Result, string) {
	t.Helper()
	var lines []string
	for i, path := range targets {
		lines = append(lines, logLine(i%3000, "GET "+path+" HTTP/1.1", "UA"))
	}
	args := append([]string{
		"same", writeLog(t, lines...), "--baseline", baseline, "--candidate", candidate,
		"--out", t.TempDir(), "--quiet", "--json", "--pause", "20ms",
	}, flags...)
	code, out, errOut := call(args...)
	result := &same.Result{}
	if code != run.ExitUsage {
		if err := json.Unmarshal([]byte(out), result); err != nil {
			t.Fatalf("%v: exit %d, %s, %s", err, code, out, errOut)
		}
	}
	return code, result, errOut
}

// image returns so many bytes that are no text.
func image(bytes int) []byte {
	out := make([]byte, bytes)
	for i := range out {
		out[i] = byte(i * i / 7)
	}
	return out
}

// write answers with a text as HTML.
func write(w http.ResponseWriter, format string, a ...any) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	_, _ = fmt.Fprintf(w, format, a...)
}

func gzipped(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return out.Bytes()
}

const article = `<html><body><h1>Old shoes</h1>
<p>We have sold old shoes since 1975, and mend them, too. Come in and have a look.</p></body></html>`

// onlyCandidate serves the article, and something else on the candidate.
func onlyCandidate(other func(w http.ResponseWriter, r request)) func(w http.ResponseWriter, r request) {
	return func(w http.ResponseWriter, r request) {
		if r.side == 1 {
			other(w, r)
			return
		}
		write(w, article)
	}
}

func TestPlantedChangesAreFound(t *testing.T) {
	picture := func(change func(b []byte) []byte) func(w http.ResponseWriter, r request) {
		return func(w http.ResponseWriter, r request) {
			w.Header().Set("Content-Type", "image/png")
			body := image(40_000)
			if r.side == 1 {
				body = change(body)
			}
			_, _ = w.Write(body)
		}
	}
	rows := []struct {
		why   string
		serve func(w http.ResponseWriter, r request)
		kind  same.Kind
		shows string // in the finding, as JSON
	}{
		{"a word of a text, as an old row of the database has it", onlyCandidate(func(w http.ResponseWriter, _ request) {
			write(w, "%s", strings.Replace(article, "1975", "1974", 1))
		}), same.Text, `"where":"line 2"`},
		{"a word beside a number that varies", func(w http.ResponseWriter, r request) {
			word := [...]string{"visitors", "guests"}[r.side]
			write(w, "%s<p>%d %s</p>", article, r.n, word)
		}, same.Text, "guests"},
		{"a link to another site", onlyCandidate(func(w http.ResponseWriter, _ request) {
			write(w, "%s", strings.Replace(article, "look.", `<a href="http://evil.example/">look.</a>`, 1))
		}), same.Text, "evil.example"},
		{"one byte of an image", picture(func(b []byte) []byte { b[30_000]++; return b }), same.Image, `"where":"byte 30001"`},
		{"an image that is cut off", picture(func(b []byte) []byte { return b[:8192] }), same.Image, `8192 bytes`},
		{"a missing file", onlyCandidate(func(w http.ResponseWriter, r request) { http.NotFound(w, r.Request) }), same.Status, `"candidate":"404"`},
		{"a redirection in place of a page", onlyCandidate(func(w http.ResponseWriter, r request) {
			http.Redirect(w, r.Request, "/wp-login.php", http.StatusFound)
		}), same.Status, `"candidate":"302"`},
		{"a redirection to elsewhere", func(w http.ResponseWriter, r request) {
			w.Header().Set("Location", [...]string{r.own + "/a", "https://live.example/a"}[r.side])
			w.WriteHeader(http.StatusMovedPermanently)
		}, same.Header, `"header":"Location"`},
		{"another type of content", onlyCandidate(func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, article)
		}), same.Header, `"header":"Content-Type"`},
		{"no caching any more", onlyCandidate(func(w http.ResponseWriter, _ request) {
			w.Header().Set("Cache-Control", "no-store")
			write(w, article)
		}), same.Header, `"candidate":"no-store"`},
		{"compression on one side only", onlyCandidate(func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(gzipped(article))
		}), same.Header, `"header":"Content-Encoding"`},
		{"no ETag any more, so that browsers load all anew", func(w http.ResponseWriter, r request) {
			if r.side == 0 {
				w.Header().Set("ETag", `"1"`)
			}
			write(w, article)
		}, same.Header, `"header":"ETag"`},
		{"an empty page", onlyCandidate(func(w http.ResponseWriter, _ request) { write(w, "") }), same.Text, `"candidate":"(its end)"`},
		{"no answer at all", onlyCandidate(func(http.ResponseWriter, request) { panic(http.ErrAbortHandler) }), same.Missing, "status 200"},
		{"an answer that ends in its body", onlyCandidate(func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Length", "5000")
			write(w, article)
		}), same.Missing, "ended in the body"},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			baseline, candidate := twoSites(t, func(w http.ResponseWriter, r request) {
				if r.URL.Path == "/same" {
					write(w, "the same on both")
					return
				}
				row.serve(w, r)
			})
			code, result, errOut := compared(t, baseline, candidate, []string{"/same", "/page"})
			if code != run.ExitNo || result.Verdict != same.VerdictDifferent || result.Pages.Different != 1 || result.Pages.Same != 1 {
				t.Fatalf("exit %d, %s, %+v: %s", code, result.Verdict, result.Pages, errOut)
			}
			var shown bytes.Buffer
			plain := json.NewEncoder(&shown)
			plain.SetEscapeHTML(false)
			_ = plain.Encode(result.Shown[0])
			if result.Shown[0].Path != "/page" || result.Shown[0].Kind != row.kind || !strings.Contains(shown.String(), row.shows) {
				t.Errorf("%s", shown.String())
			}
		})
	}
}

// What varies by itself, and what is only named otherwise, is no difference.
func TestQuietPairsAreTheSame(t *testing.T) {
	rows := []struct {
		why   string
		serve func(w http.ResponseWriter, r request)
		flags []string
	}{
		{why: "the same pages", serve: func(w http.ResponseWriter, _ request) { write(w, article) }},
		{why: "a nonce for each answer", serve: func(w http.ResponseWriter, r request) {
			write(w, `%s<input name="_wpnonce" value="%08x">`, article, r.n*7919+int64(r.side)*104729)
		}},
		{why: "counters that are not alike", serve: func(w http.ResponseWriter, r request) {
			write(w, "%s<p>Visitors: %d</p>", article, r.n+int64(r.side)*995)
		}},
		{why: "the time, to the nanosecond", serve: func(w http.ResponseWriter, _ request) {
			write(w, "%s<p>It is %s</p>", article, time.Now().Format(time.RFC3339Nano))
		}},
		{why: "the time, to the second, by clocks that are apart", serve: func(w http.ResponseWriter, r request) {
			write(w, "%s<p>It is %s</p>", article, time.Now().Add(time.Duration(r.side)*17*time.Second).Format(time.TimeOnly))
		}, flags: []string{"--pause", "1100ms"}},
		{why: "links to itself, in all spellings", serve: func(w http.ResponseWriter, r request) {
			escaped := strings.ReplaceAll(r.own, "/", `\/`)
			write(w, `%s<a href="%s/x">x</a><script>{"ajax":"%s\/a"}</script><i data-u="%s">`, article, r.own, escaped,
				strings.NewReplacer(":", "%3A", "/", "%2F").Replace(r.own))
		}},
		{why: "a redirection on the site itself, in full and not", serve: func(w http.ResponseWriter, r request) {
			w.Header().Set("Location", [...]string{r.own + "/new/", "/new/"}[r.side])
			w.WriteHeader(http.StatusMovedPermanently)
		}},
		{why: "headers that name a server, a date, a cache, a cookie", serve: func(w http.ResponseWriter, r request) {
			w.Header().Set("Server", fmt.Sprint("nginx/1.", r.side))
			w.Header().Set("Age", fmt.Sprint(r.n))
			w.Header().Set("Set-Cookie", fmt.Sprintf("id=%d", r.n))
			w.Header().Set("Last-Modified", time.Now().Add(time.Duration(r.side)*time.Hour).UTC().Format(http.TimeFormat))
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, r.side))
			write(w, article)
		}},
		{why: "headers in other words", serve: func(w http.ResponseWriter, r request) {
			w.Header().Set("Cache-Control", [...]string{"no-cache, max-age=0", "max-age=0,no-cache"}[r.side])
			w.Header().Set("Content-Type", [...]string{"text/html;charset=utf-8", "text/html; charset=UTF-8"}[r.side])
			_, _ = io.WriteString(w, article)
		}},
		{why: "a max-age that counts down", serve: func(w http.ResponseWriter, r request) {
			w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", 5000-17*r.n-int64(100*r.side)))
			write(w, article)
		}},
		{why: "gzip on both sides", serve: func(w http.ResponseWriter, r request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write(gzipped(fmt.Sprintf("%s<p>%d</p>", article, r.n+int64(50*r.side))))
		}},
		{why: "a page that is missing on both sides", serve: func(w http.ResponseWriter, r request) { http.NotFound(w, r.Request) }},
		{why: "an image", serve: func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "image/jpeg")
			_, _ = w.Write(image(5 << 20)) // more than is held of a body
		}},
		{why: "a hiccup of the candidate", serve: func(w http.ResponseWriter, r request) {
			if r.side == 1 && r.n == 2 {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			write(w, article)
		}},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			baseline, candidate := twoSites(t, func(w http.ResponseWriter, r request) {
				if r.URL.Path == "/same" {
					write(w, "the same on both")
					return
				}
				row.serve(w, r)
			})
			code, result, errOut := compared(t, baseline, candidate, []string{"/same", "/page"}, append(row.flags, "--concurrency", "1")...)
			if code != run.ExitYes || result.Verdict != same.VerdictSame || result.Pages.Same != 2 {
				t.Errorf("exit %d, %+v, %+v: %s", code, result.Pages, result.Shown, errOut)
			}
		})
	}
}

// What says nothing is never called the same.
func TestPagesThatCannotBeCompared(t *testing.T) {
	bomb := gzipped(strings.Repeat("\x00", 32<<20))
	rows := []struct {
		why   string
		serve func(w http.ResponseWriter, r request)
		says  string
	}{
		{"a page that is another one each time", func(w http.ResponseWriter, r request) {
			write(w, "word%d word%d", r.n*2+int64(1000*r.side), r.n*2+1+int64(1000*r.side))
		}, "vary by themselves"},
		{"a picture that is another one each time", func(w http.ResponseWriter, r request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = fmt.Fprint(w, r.side, r.n)
		}, "varies by itself"},
		{"two sites in trouble", func(w http.ResponseWriter, _ request) {
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}, "status 503"},
		{"a baseline that fails", func(w http.ResponseWriter, r request) {
			if r.side == 0 {
				panic(http.ErrAbortHandler)
			}
			write(w, article)
		}, "the baseline"},
		{"a status that comes and goes", func(w http.ResponseWriter, r request) {
			w.WriteHeader(200 + 4*int(r.n%2))
		}, "status varies"},
		{"a body without end", func(w http.ResponseWriter, r request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(image(64 << 10))
			}
		}, "larger than --max-bytes"},
		{"a gzip bomb", func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, "larger than --max-bytes"},
		{"what is no gzip, though it says so", func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, article)
		}, "content-encoding"},
		{"gzip that is cut off", func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(article)[:40])
		}, "content-encoding"},
		{"a body that never comes", func(w http.ResponseWriter, r request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "no whole answer in 300ms"},
		{"headers without end", func(w http.ResponseWriter, _ request) {
			for i := range 4000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
			write(w, article)
		}, "header"},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			baseline, candidate := twoSites(t, row.serve)
			code, result, errOut := compared(t, baseline, candidate, []string{"/page"}, "--timeout", "300ms", "--max-bytes", "8MiB")
			if code != run.ExitUnknown || result.Verdict != same.VerdictInconclusive || result.Pages.NotCompared != 1 {
				t.Fatalf("exit %d, %+v, %+v: %s", code, result.Pages, result.Shown, errOut)
			}
			if !strings.Contains(result.Shown[0].Why, row.says) {
				t.Errorf("it says %q", result.Shown[0].Why)
			}
		})
	}
}

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
		logLine(6, "GET /a HTTP/1.1", "UA"),
	)
	code, out, errOut := call("same", log, "--baseline", baseline, "--candidate", candidate, "--out", t.TempDir(), "--json", "--allow-rejects")
	result := &same.Result{}
	if err := json.Unmarshal([]byte(out), result); err != nil {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	if code != run.ExitUnknown || !strings.Contains(result.Says, "not one page has a status of 200") {
		t.Errorf("exit %d: %s", code, result.Says)
	}
	if result.Pages.Total != 2 || result.Chosen.LeftOut[same.LeftTarget] != 1 || result.Chosen.LeftOut[same.LeftMethod] == 0 {
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
		{"one site twice", []string{"--baseline", a.URL, "--candidate", a.URL}, "are one site"},
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
		if code != run.ExitUsage || !strings.Contains(errOut, row.says) {
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
	if code == run.ExitYes || result.Status != "failed" || result.Pages.Same == 0 || result.Pages.Unseen < 200 {
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
	if code != run.ExitNo || len(found) != 3 || strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Contains(all, "hunter2") {
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
	if err := program.Wait(); !errors.As(err, &exit) || exit.ExitCode() != run.ExitUnknown {
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
