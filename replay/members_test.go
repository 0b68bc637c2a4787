package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

// club is a site with members. Its login has a token, as WordPress and XenForo do; each login is a session of its own,
// and each page gives a cookie that later requests bring back.
type club struct {
	*httptest.Server
	mu       sync.Mutex
	tries    map[string]int    // logins by name
	sessions map[string]string // cookie → name
	agents   map[string]string // cookie → the visitor who uses it
	members  int               // pages for members
	guests   int
	brought  int      // requests with a cookie that a page gave
	wrong    []string // what no browser would do
	throwOut bool     // sessions end with the login
}

const (
	loginForm = `<form method="post" action="wp-login.php"><input name="log"><input type="password" name="pwd"><input type="hidden" name="token" value="t0ken"></form>`
	password  = "pa55-"
	cookie    = "s3ss10n-"
)

func newClub(t *testing.T, secure bool) *club {
	t.Helper()
	c := &club{tries: map[string]int{}, sessions: map[string]string{}, agents: map[string]string{}}
	c.Server = httptest.NewUnstartedServer(c)
	if c.EnableHTTP2 = secure; secure {
		c.StartTLS()
	} else {
		c.Start()
	}
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP shows pages, and the login.
func (c *club) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path == "/wp-login.php" {
		c.login(w, r)
		return
	}
	session, err := r.Cookie("session")
	switch {
	case err != nil:
		c.guests++
		_, _ = w.Write([]byte("hello"))
		return
	case c.sessions[session.Value] == "":
		c.wrong = append(c.wrong, "an unknown session")
	case c.throwOut:
		w.Header().Set("Location", "/wp-login.php?reauth=1")
		w.WriteHeader(http.StatusFound)
		return
	}
	if before := c.agents[session.Value]; before != "" && before != r.UserAgent() {
		c.wrong = append(c.wrong, "a session that two visitors share")
	}
	c.agents[session.Value] = r.UserAgent()
	if _, err := r.Cookie("page"); err == nil {
		c.brought++
	}
	c.members++
	w.Header().Add("Set-Cookie", fmt.Sprintf("page=%d; Path=/", c.members))
	w.Header().Add("Set-Cookie", "evil=1; Domain=evil.example")
	_, _ = w.Write([]byte("hello"))
}

func (c *club) login(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Set-Cookie", "test=1; Path=/")
		_, _ = w.Write([]byte(loginForm))
		return
	}
	name := r.PostFormValue("log")
	c.tries[name]++
	if test, err := r.Cookie("test"); err != nil || test.Value != "1" || r.PostFormValue("token") != "t0ken" {
		c.wrong = append(c.wrong, "a login without cookie or token")
	}
	if r.PostFormValue("pwd") != password+name {
		_, _ = w.Write([]byte("wrong" + loginForm))
		return
	}
	session := fmt.Sprintf("%s%d", cookie, len(c.sessions))
	c.sessions[session] = name
	http.SetCookie(w, &http.Cookie{Name: "session", Value: session, Path: "/", HttpOnly: true})
	w.Header().Set("Location", "/wp-admin/")
	w.WriteHeader(http.StatusFound)
}

func accountsFile(t *testing.T, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "member%d:%smember%d\n", i, password, i)
	}
	return writeText(t, text.String())
}

// clubLog has so many clients, of which the first are members: each asks for four pages, members for one of the
// administration among them.
func clubLog(t *testing.T, clients, members int, protocol string) string {
	t.Helper()
	var lines []string
	for page := range 4 {
		for client := range clients {
			target := fmt.Sprintf("/page%d", page)
			if client < members && page == 2 {
				target = "/wp-admin/edit.php"
			}
			lines = append(lines, fmt.Sprintf("192.0.2.1 - - [20/Nov/2026:10:00:0%d +0000] \"GET %s %s\" 200 5 \"-\" \"UA%d\"\n",
				page, target, protocol, client))
		}
	}
	return writeLog(t, lines...)
}

func TestMembersAreLoggedIn(t *testing.T) {
	for _, c := range []struct {
		why      string
		secure   bool
		protocol string
		args     string
	}{
		{"the open loop, by event loops", false, "HTTP/1.1", "--speed 10"},
		{"as fast as it goes", false, "HTTP/1.1", "--speed max --connections 4"},
		{"users", false, "HTTP/1.1", "--users 260 --speed 10 --ramp-up 1ms"},
		{"TLS", true, "HTTP/1.1", "--speed 10 --insecure"},
		{"HTTP/2", true, "HTTP/2.0", "--speed 10 --insecure"},
		{"users over HTTP/2", true, "HTTP/2.0", "--users 65 --speed 10 --ramp-up 1ms --insecure"},
	} {
		t.Run(c.why, func(t *testing.T) {
			site, out := newClub(t, c.secure), t.TempDir()
			visitors, members, accounts := 260, 220, 200
			if c.secure { // each visitor costs handshakes
				visitors, members, accounts = visitors/4, members/4, accounts/4
			}
			args := []string{"run", clubLog(t, visitors, members, c.protocol), "--target", site.URL, "--out", out, "--quiet", "--accounts", accountsFile(t, accounts)}
			code, table, errOut := call(append(args, strings.Fields(c.args)...)...)
			if code != cli.ExitYes {
				t.Fatalf("exit %d: %s", code, errOut)
			}
			if len(site.wrong) > 0 {
				t.Errorf("%d times: %s", len(site.wrong), site.wrong[0])
			}
			if len(site.sessions) != members || len(site.tries) != accounts || len(site.agents) != members {
				t.Errorf("%d sessions of %d accounts, used by %d visitors", len(site.sessions), len(site.tries), len(site.agents))
			}
			if waits := strings.Contains(c.args, "--users"); waits && site.brought != members*3 {
				t.Errorf("%d requests brought back what a page had given", site.brought)
			}
			if site.members != members*4 || site.guests != (visitors-members)*4 {
				t.Errorf("%d pages for members, %d for guests", site.members, site.guests)
			}
			if !strings.Contains(table, fmt.Sprintf("Members: %d clients with %d accounts, %d of %d requests", members, accounts, members*4, visitors*4)) {
				t.Error(table)
			}
			flagged := 0
			for _, r := range records(t, out) {
				if r.Flags&record.Member != 0 {
					flagged++
				}
			}
			if flagged != members*4 {
				t.Errorf("%d records are members'", flagged)
			}
			noSecrets(t, out, table+errOut)
		})
	}
}

func records(t *testing.T, out string) []record.Record {
	t.Helper()
	var all []record.Record
	for r, err := range latest(t, out).Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// noSecrets looks for cookies and passwords in all that a run wrote.
func noSecrets(t *testing.T, out, printed string) {
	t.Helper()
	nothingOf(t, out, printed, password, cookie, "t0ken")
}

// nothingOf looks for secrets in all that a run wrote.
func nothingOf(t *testing.T, out, printed string, secrets ...string) {
	t.Helper()
	texts := map[string]string{"the terminal": printed}
	_ = filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			texts[path] = string(text)
		}
		return err
	})
	for where, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", where, secret)
			}
		}
	}
}

func TestMembersWhoAreSentToTheLoginAreCounted(t *testing.T) {
	site, out := newClub(t, false), t.TempDir()
	site.throwOut = true
	code, table, errOut := call("run", clubLog(t, 4, 2, "HTTP/1.1"), "--target", site.URL, "--out", out, "--quiet",
		"--speed", "100", "--accounts", accountsFile(t, 2))
	if code != cli.ExitYes || !strings.Contains(table, "8 sent to the login") ||
		!strings.Contains(errOut, "8 of 8 requests of members were sent to the login") {
		t.Errorf("exit %d\n%s\n%s", code, table, errOut)
	}
	summary, err := os.ReadFile(filepath.Join(out, "latest", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"sent_to_login": 8`, `"status_mismatch": 8`, `"clients": 2`} {
		if !strings.Contains(string(summary), want) {
			t.Errorf("summary.json has no %s:\n%s", want, summary)
		}
	}
}

func TestARedirectToTheLoginIsAMismatchWhereTheLogHasOneToo(t *testing.T) {
	site, out := newClub(t, false), t.TempDir()
	site.throwOut = true
	log := writeLog(t, logLine(0, "GET /wp-admin/ HTTP/1.1", "UA"),
		strings.Replace(logLine(0, "GET /wp-admin/ HTTP/1.1", "UA"), " 200 5 ", " 302 0 ", 1))
	code, table, errOut := call("run", log, "--target", site.URL, "--out", out, "--quiet", "--speed", "100", "--json", "--accounts", accountsFile(t, 2))
	if code != cli.ExitYes || !strings.Contains(table, `"status_mismatch": 2`) {
		t.Errorf("exit %d\n%s\n%s", code, table, errOut)
	}
}

func TestLoginsAreRefusedBeforeAnyLoad(t *testing.T) {
	wrong := writeText(t, "anna:no\nmember1:"+password+"member1\nbert:no\n")
	open := writeText(t, "anna:x\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, args, says string
		tries           int
	}{
		{"wrong passwords are all named, and tried once", "--accounts " + wrong, `does not let in "anna", "bert" (each was tried once)`, 3},
		{"no login form", "--login-page /page1 --accounts " + wrong, "has no login form at /page1: give its place with --login-page PATH", 0},
		{"no member in the log", "--include page3 --exclude . --accounts " + wrong, "no client of the log is recognisable as a member", 0},
		{"others can read the file", "--accounts " + open, "can be read by others: restrict it with chmod 600", 0},
		{"no file", "--accounts /none", "--accounts: stat /none", 0},
		{"a login page that is none", "--login-page login --accounts " + wrong, `--login-page "login" is not a path`, 0},
		{"a share of more than all", "--members-share 30 --accounts " + wrong, "--members-share: 30 is out of range", 0},
		{"a share and a sign", "--members-share 0.3 --members-match x --accounts " + wrong, "cannot be combined", 0},
		{"a share without accounts", "--members-share 0.3", "--members-share needs --accounts", 0},
		{"a sign that is none", "--members-match ( --accounts " + wrong, `--members-match "(" is not a regular expression`, 0},
		{"a Cookie header too", "--header Cookie: --accounts " + wrong, "a Cookie header would replace", 0},
	} {
		t.Run(c.why, func(t *testing.T) {
			site, out := newClub(t, false), t.TempDir()
			args := []string{"run", clubLog(t, 8, 4, "HTTP/1.1"), "--target", site.URL, "--out", out, "--quiet"}
			code, printed, errOut := call(append(args, strings.Fields(c.args)...)...)
			if code != cli.ExitUsage || !strings.Contains(errOut, c.says) {
				t.Errorf("exit %d: %s", code, errOut)
			}
			tries := 0
			for _, n := range site.tries {
				tries += n
			}
			if tries != c.tries || site.members+site.guests > 1 { // one: the page that is no login
				t.Errorf("%d logins, %d pages", tries, site.members+site.guests)
			}
			if entries, _ := os.ReadDir(out); len(entries) > 0 {
				t.Error("there is a run directory")
			}
			noSecrets(t, out, printed+errOut)
		})
	}
	code, _, errOut := call("run", clubLog(t, 8, 4, "HTTP/1.1"), "--accounts", wrong, "--out", t.TempDir())
	if code != cli.ExitUsage || !strings.Contains(errOut, "--accounts needs --target") {
		t.Errorf("without a target: exit %d: %s", code, errOut)
	}
}

// A form that leads elsewhere would give the passwords away.
func TestPasswordsGoToTheTargetAlone(t *testing.T) {
	elsewhere := newClub(t, false)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Replace(loginForm, `action="`, `action="http://localhost`+strings.TrimPrefix(elsewhere.URL, "http://127.0.0.1")+"/", 1))
	}))
	defer site.Close()
	code, _, errOut := call("run", clubLog(t, 2, 2, "HTTP/1.1"), "--target", site.URL, "--out", t.TempDir(), "--accounts", accountsFile(t, 2))
	if code != cli.ExitUsage || !strings.Contains(errOut, "leads to another host") || len(elsewhere.tries) > 0 {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestAShareOfTheClientsAreMembers(t *testing.T) {
	site := newClub(t, false)
	code, table, errOut := call("run", clubLog(t, 100, 0, "HTTP/1.1"), "--target", site.URL, "--out", t.TempDir(), "--quiet",
		"--speed", "max", "--members-share", "0.5", "--accounts", accountsFile(t, 3))
	if n := len(site.sessions); code != cli.ExitYes || n < 30 || n > 70 || site.members != 4*n ||
		!strings.Contains(table, fmt.Sprintf("Members: %d clients with 3 accounts", n)) {
		t.Errorf("exit %d, %d sessions, %d pages: %s\n%s", code, n, site.members, table, errOut)
	}
}

func TestOnlyClientsThatSendAreLoggedIn(t *testing.T) {
	site := newClub(t, false)
	code, _, errOut := call("run", clubLog(t, 100, 50, "HTTP/1.1"), "--target", site.URL, "--out", t.TempDir(), "--quiet",
		"--speed", "100", "--limit", "10", "--burst", "--accounts", accountsFile(t, 200))
	if code != cli.ExitYes || len(site.sessions) != 10 || site.members != 10 {
		t.Errorf("exit %d, %d sessions, %d pages: %s", code, len(site.sessions), site.members, errOut)
	}
}
