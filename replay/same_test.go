package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/cli"
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
	if code != cli.ExitUsage {
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

// besideSame serves /same alike on both sides, and all else by serve.
func besideSame(serve func(http.ResponseWriter, request)) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, r request) {
		if r.URL.Path == "/same" {
			write(w, "the same on both")
			return
		}
		serve(w, r)
	}
}

// TestAbsoluteURLsAreComparedAsPaths: a proxy logs them, and no side is asked for another host.
func TestAbsoluteURLsAreComparedAsPaths(t *testing.T) {
	baseline, candidate := twoSites(t, func(w http.ResponseWriter, r request) {
		if "http://"+r.Host != r.own || r.RequestURI != "/a" {
			w.WriteHeader(http.StatusTeapot)
		}
		write(w, article)
	})
	code, result, errOut := compared(t, baseline, candidate, []string{"http://shop.example/a", "/a", "http://blog.example:80/a"}, "--vhost", "shop.example")
	if code != 0 || result.Pages.Same != 1 || !slices.Equal(result.Chosen.VHosts, []string{"shop.example"}) {
		t.Errorf("exit %d %s: %+v", code, errOut, result)
	}
}

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
			baseline, candidate := twoSites(t, besideSame(row.serve))
			code, result, errOut := compared(t, baseline, candidate, []string{"/same", "/page"})
			if code != cli.ExitNo || result.Verdict != same.VerdictDifferent || result.Pages.Different != 1 || result.Pages.Same != 1 {
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
			baseline, candidate := twoSites(t, besideSame(row.serve))
			code, result, errOut := compared(t, baseline, candidate, []string{"/same", "/page"}, append(row.flags, "--concurrency", "1")...)
			if code != cli.ExitYes || result.Verdict != same.VerdictSame || result.Pages.Same != 2 {
				t.Errorf("exit %d, %+v, %+v: %s", code, result.Pages, result.Shown, errOut)
			}
		})
	}
}

// What says nothing is never called the same.
func TestPagesThatCannotBeCompared(t *testing.T) {
	bomb := gzipped(strings.Repeat("\x00", 9<<20))
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
			timeout := "1m"
			if strings.Contains(row.says, "300ms") {
				timeout = "300ms"
			}
			code, result, errOut := compared(t, baseline, candidate, []string{"/page"}, "--timeout", timeout, "--max-bytes", "8MiB")
			if code != cli.ExitUnknown || result.Verdict != same.VerdictInconclusive || result.Pages.NotCompared != 1 {
				t.Fatalf("exit %d, %+v, %+v: %s", code, result.Pages, result.Shown, errOut)
			}
			if !strings.Contains(result.Shown[0].Why, row.says) {
				t.Errorf("it says %q", result.Shown[0].Why)
			}
		})
	}
}
