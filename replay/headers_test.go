package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/replay/cli"
)

// TestSecretsInHeadersAreNotShown: what is refused says where it stands, and not what it says.
func TestSecretsInHeadersAreNotShown(t *testing.T) {
	log := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	header := func(line string) []string { return []string{"--header", line} }
	file := func(text string) []string { return []string{"--header-file", writeText(t, text)} }
	const list = " shows a secret in the list of processes: put the line into a file that only you can read, and give --header-file"
	for _, c := range []struct {
		why  string
		args []string
		says []string
	}{
		{"a cookie", header("Cookie: session=hunter2"), []string{"--header Cookie" + list}},
		{"a key of an API", header("X-Api-Key: hunter2"), []string{"--header X-Api-Key" + list}},
		{"a token of authentication", header("X-Auth-Token: hunter2"), []string{"--header X-Auth-Token" + list}},
		{"GitLab's token", header("Private-Token: hunter2"), []string{"--header Private-Token" + list}},
		{"Vault's token", header("x-vault-token:hunter2"), []string{"--header x-vault-token" + list}},
		{"a bearer's token under any name", header("X-For: Bearer hunter2"), []string{"--header X-For" + list}},
		{"a password in an address", header("Referer: http://me:hunter2@site.example/"), []string{"--header Referer" + list}},
		{"a header without a colon", header("X-Api-Key hunter2"), []string{"--header 1 is not a header"}},
		{"one in a file", file("# of the shop\nX-A: b\nX-Api-Key hunter2\n"), []string{"other.txt, line 3: is not a header"}},
		{"a value that would begin a line of its own", file("X-Api-Key: hunter2\x01\n"), []string{"other.txt, line 1: has control characters"}},
		{"a host that is none", file("\nHost: hunter2/x\n"), []string{"other.txt, line 2: is not a host name"}},
		{"all of it at once", append(header("Cookie: hunter2"), append(header("nonsense"), file("hunter2")...)...),
			[]string{"--header Cookie" + list, "--header 2 is not a header", "other.txt, line 1: is not a header"}},
	} {
		code, _, errOut := call(append([]string{"run", log, "--out", t.TempDir(), "--quiet"}, c.args...)...)
		if code != cli.ExitUsage || strings.Contains(errOut, "hunter2") {
			t.Errorf("%s: exit %d: %s", c.why, code, errOut)
		}
		for _, says := range c.says {
			if !strings.Contains(errOut, says) {
				t.Errorf("%s: %s does not say %q", c.why, errOut, says)
			}
		}
	}
}

func TestAPlusSignInIISRefererStays(t *testing.T) {
	server := newSite(t)
	log := writeLog(t, "#Fields: date time c-ip cs-method cs-uri-stem cs(User-Agent) cs(Referer) sc-status\n",
		"2026-11-25 10:00:00 192.0.2.1 GET / a+b a+b 200\n")
	code, _, errOut := call("run", log, "--target", server.URL, "--out", t.TempDir(), "--quiet")
	if got := server.requests(); code != 0 || len(got) != 1 || !strings.HasSuffix(got[0], "|a b|a+b") {
		t.Errorf("exit %d, sent %q: %s", code, got, errOut)
	}
}

func TestSecretsInAFileOfHeadersAreSentAndNotKept(t *testing.T) {
	server := newSite(t)
	out := t.TempDir()
	code, _, errOut := call("run", writeLog(t, logLine(0, "GET / HTTP/1.1", "UA")), "--target", server.URL, "--out", out, "--quiet",
		"--header-file", writeText(t, "X-Api-Key: hunter2\r\nReferer: http://site.example/hunter2\r\n"))
	if code != 0 || !strings.Contains(server.requests()[0], "hunter2") {
		t.Fatalf("exit %d, sent %q: %s", code, server.requests(), errOut)
	}
	text, err := os.ReadFile(filepath.Join(out, "latest", "run.json"))
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("%v: run.json holds a secret: %s", err, text)
	}
}

func TestTheLogsClientIsSentOnlyWhereThatIsWanted(t *testing.T) {
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("X-Forwarded-For")+"|"+r.Header.Get("X-Real-IP"))
	}))
	defer server.Close()
	log := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	for _, row := range []struct {
		args []string
		want string
	}{{nil, "|"}, {[]string{"--client-header", "X-Forwarded-For"}, "192.0.2.1|"}} {
		sent = nil
		code, _, errOut := call(append([]string{"run", log, "--target", server.URL, "--out", t.TempDir(), "--quiet"}, row.args...)...)
		if code != 0 || len(sent) == 0 || sent[len(sent)-1] != row.want {
			t.Errorf("%v: exit %d, %q: %s", row.args, code, sent, errOut)
		}
	}
}
