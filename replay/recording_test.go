package main

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"plimsoll/replay/cli"
)

// board is a site that takes replies. Each page gives its visitor a cookie and a token, and a reply needs both of them,
// once; so nothing gets through that a recording holds already.
type board struct {
	*httptest.Server
	mu      sync.Mutex
	pages   int
	tokens  map[string]string   // by cookie
	replies map[string][]string // by message: what else came
	wrong   []string
}

func newBoard(t *testing.T, secure bool) *board {
	t.Helper()
	b := &board{tokens: map[string]string{}, replies: map[string][]string{}}
	b.Server = httptest.NewUnstartedServer(b)
	if b.EnableHTTP2 = secure; secure {
		b.StartTLS()
	} else {
		b.Start()
	}
	t.Cleanup(b.Close)
	return b
}

// ServeHTTP shows the form, packed, and takes replies.
func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Method == http.MethodGet {
		b.pages++
		visitor := fmt.Sprintf("v1s1tor-%d", b.pages)
		b.tokens[visitor] = fmt.Sprintf("n0w-%d", b.pages)
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: visitor, Path: "/"})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		fmt.Fprintf(packed, `<form action="/other"><input name="_xfToken" value="0ther"></form>%s<form action="/reply" method="post">
<input type="hidden" name="_xfToken" value="%s"></form>`, strings.Repeat("<p>long</p>", 20000), b.tokens[visitor])
		_ = packed.Close()
		return
	}
	if err := r.ParseMultipartForm(1 << 20); err != nil && r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		b.wrong = append(b.wrong, err.Error())
	}
	visitor, err := r.Cookie("visitor")
	if err != nil || b.tokens[visitor.Value] == "" || b.tokens[visitor.Value] != r.PostFormValue("_xfToken") {
		b.wrong = append(b.wrong, fmt.Sprintf("%s with token %q of %v", r.PostForm, r.PostFormValue("_xfToken"), visitor))
		w.WriteHeader(http.StatusForbidden)
		return
	}
	delete(b.tokens, visitor.Value)
	message := r.PostFormValue("message")
	b.replies[message] = append(b.replies[message], r.PostFormValue("email"))
	w.Header().Set("Location", "/thread")
	w.WriteHeader(http.StatusSeeOther)
}

const urlencoded = "application/x-www-form-urlencoded"

// recorded is a line of a recording, with the length of the body that came.
func recorded(second, client int, method, target, protocol, kind, body string, length int) string {
	escaped := strings.NewReplacer(`"`, `\"`, "\r", `\r`, "\n", `\n`).Replace(body)
	return fmt.Sprintf(`{"time":"17636328%02d.%03d","client":"192.0.2.1","user":"","method":"%s","host":"","target":"%s","protocol":"%s","status":"%d","bytes":"0","duration":"0.001","referer":"","agent":"UA%d","type":"%s","length":"%d","body":"%s"}`,
		second, client, method, target, protocol, map[string]int{"GET": 200, "POST": 303}[method], client, kind, length, escaped) + "\n"
}

// boardLog has visitors who open a page and reply to it, and replies that are not sent.
func boardLog(t *testing.T, visitors int, protocol string) string {
	t.Helper()
	var pages, replies []string
	for i := range visitors {
		pages = append(pages, recorded(0, i, "GET", "/thread", protocol, "", "", 0))
		body, kind := fmt.Sprintf("message=Hi+%d&_xfToken=r3corded&email=anna%d%%40site.example", i, i), urlencoded
		if i%2 == 1 {
			kind = "multipart/form-data; boundary=b1"
			body = fmt.Sprintf("--b1\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nHi %d\r\n--b1\r\n"+
				"Content-Disposition: form-data; name=\"_xfToken\"\r\n\r\nr3corded\r\n--b1--\r\n", i)
		}
		replies = append(replies, recorded(2, i, "POST", "/reply", protocol, kind, body, len(body)))
	}
	return writeLog(t, append(append(pages, replies...),
		recorded(3, 0, "POST", "/login", protocol, urlencoded, "log=a&pwd=hunter2", 17),
		recorded(3, 0, "POST", "/reply", protocol, urlencoded, "message=half", 4000),
		recorded(3, 0, "POST", "/reply", protocol, urlencoded, "", 70000),
		recorded(3, 0, "POST", "/reply", protocol, "text/plain", "hunter2", 7),
		`{"time":"1763632803.000","client":"192.0.2.1","method":"POST","target":"/login","body":"pwd=hunter2`+"\n")...)
}

func TestRecordedFormsAreSentWithTheTokensOfToday(t *testing.T) {
	type row struct {
		why      string
		secure   bool
		protocol string
		args     string
	}
	send := func(t *testing.T, c row, slower string) (site *board, out, output string) {
		site, out = newBoard(t, c.secure), t.TempDir()
		args := []string{"run", boardLog(t, 30, c.protocol), "--target", site.URL, "--out", out, "--quiet", "--allow-rejects", "--methods", "GET,POST"}
		code, table, errOut := call(append(args, strings.Fields(strings.Replace(c.args, "--speed 2", "--speed "+slower, 1))...)...)
		if code != cli.ExitYes {
			t.Fatalf("exit %d: %s", code, errOut)
		}
		return site, out, table + errOut
	}
	for _, c := range []row{
		{"the open loop, by event loops", false, "HTTP/1.1", "--speed 2"},
		{"as fast as it goes, one after the other", false, "HTTP/1.1", "--speed max --connections 1"},
		{"users", false, "HTTP/1.1", "--users 30 --speed 10 --ramp-up 1ms"},
		{"TLS", true, "HTTP/1.1", "--speed 2 --insecure"},
		{"a log of HTTP/2", true, "HTTP/2.0", "--speed 2 --insecure"},
	} {
		t.Run(c.why, func(t *testing.T) {
			site, out, output := send(t, c, "2")
			if strings.Contains(c.args, "--speed 2") && len(site.wrong) > 0 { // a reply may have been due before its page had come
				site, out, output = send(t, c, "0.2")
			}
			if len(site.wrong) > 0 {
				t.Errorf("%d times: %s", len(site.wrong), site.wrong[0])
			}
			if len(site.replies) != 30 {
				t.Errorf("%d messages of 30 came", len(site.replies))
			}
			for message, emails := range site.replies {
				if len(emails) != 1 || emails[0] != "" && !strings.HasSuffix(emails[0], "@example.invalid") {
					t.Errorf("%s: %q", message, emails)
				}
			}
			summary, err := os.ReadFile(filepath.Join(out, "latest", "summary.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"password_in_body": 1`, `"body_not_recorded": 2`, `"body_unreadable": 1`, `"ok": 60`, `"status_mismatch": 0`} {
				if !strings.Contains(string(summary), want) {
					t.Errorf("summary.json has no %s:\n%s", want, summary)
				}
			}
			nothingOf(t, out, output, "hunter2", "anna", "r3corded", "n0w-", "v1s1tor")
		})
	}
}

func TestRecordedFormsStayAtHomeUnlessTheyAreAskedFor(t *testing.T) {
	site, out := newBoard(t, false), t.TempDir()
	code, _, errOut := call("run", boardLog(t, 3, "HTTP/1.1"), "--target", site.URL, "--out", out, "--quiet", "--allow-rejects", "--speed", "max")
	if code != cli.ExitYes || site.pages != 3 || len(site.replies)+len(site.wrong) > 0 {
		t.Errorf("exit %d, %d pages, %v %v: %s", code, site.pages, site.replies, site.wrong, errOut)
	}
}
