package members

import (
	"fmt"
	"strings"
	"testing"

	"plimsoll/replay/engine/wire"
)

func get(host, target string) *wire.Request {
	return &wire.Request{Method: "GET", Host: host, Target: target}
}

func TestASessionKeepsWhatBrowsersKeep(t *testing.T) {
	for _, c := range []struct {
		why        string
		setCookie  []string
		host, path string
		want       string
	}{
		{"a cookie", []string{"a=1"}, "", "/x", "a=1"},
		{"several", []string{"a=1; Path=/; HttpOnly", "b=2; path=/"}, "", "/", "a=1; b=2"},
		{"a later answer changes it", []string{"a=1", "a=2"}, "", "/x", "a=2"},
		{"and takes it away", []string{"a=1", "a=; Max-Age=0"}, "", "/x", ""},
		{"or lets it end", []string{"a=1", "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, "", "/x", ""},
		{"of a folder", []string{"a=1; Path=/wp-admin"}, "", "/wp-admin/edit.php", "a=1"},
		{"elsewhere", []string{"a=1; Path=/wp-admin"}, "", "/wp-administration", ""},
		{"with quotes", []string{`a="1 2"; Path=/`}, "", "/", `a="1 2"`},
		{"Secure, behind what has TLS elsewhere", []string{"a=1; Secure"}, "", "/x", "a=1"},
		{"the log names the same host", []string{"a=1"}, "Site.example:8080", "/x", "a=1"},
		{"the log names another host", []string{"a=1"}, "evil.example", "/x", ""},
		{"no path", []string{"a=1"}, "", "http://site.example/", ""},
		{"of the domain", []string{"a=1; Domain=site.example"}, "", "/x", "a=1"},
		{"for another domain", []string{"a=1; Domain=evil.example"}, "", "/x", ""},
		{"for a part of the domain's name", []string{"a=1; Domain=e.example"}, "", "/x", ""},
		{"a value that begins a header", []string{"a=1\r\nX-Evil: 1"}, "", "/x", ""},
		{"a name that does", []string{"a\r\nX=1"}, "", "/x", ""},
		{"a path that does", []string{"a=1; Path=/\r\nX: 1"}, "", "/x", "a=1"},
		{"nonsense", []string{"", "=", ";;;", "a"}, "", "/x", ""},
		{"larger than browsers keep", []string{"a=" + strings.Repeat("x", 5000)}, "", "/x", ""},
	} {
		s := newSession("site.example:81", "", Place{path: "/login"})
		s.Learn(get("", "/x"), &wire.SessionInfo{SetCookie: c.setCookie})
		if got := s.Cookie(get(c.host, c.path)); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}

func TestAnswersForOtherHostsGiveNoCookies(t *testing.T) {
	s := newSession("site.example", "", Place{path: "/login"})
	s.Learn(get("evil.example", "/x"), &wire.SessionInfo{SetCookie: []string{"a=1"}})
	if got := s.Cookie(get("", "/x")); got != "" {
		t.Errorf("%q", got)
	}
	everywhere := newSession("site.example", "site.example", Place{path: "/login"})
	everywhere.Learn(get("", "/x"), &wire.SessionInfo{SetCookie: []string{"a=1"}})
	if got := everywhere.Cookie(get("log.example", "/x")); got != "a=1" {
		t.Errorf("with a Host header of the user's own: %q", got)
	}
}

func TestTenThousandCookiesAreBounded(t *testing.T) {
	s := newSession("[::1]:80", "", Place{path: "/login"})
	for i := range 10_000 {
		s.Learn(get("", "/"), &wire.SessionInfo{SetCookie: []string{fmt.Sprintf("c%d=%s", i, strings.Repeat("x", 1000))}})
	}
	got := s.Cookie(get("", "/"))
	if len(got) > maxCookieHeader || !strings.HasPrefix(got, "c0=") {
		t.Errorf("%d bytes: %.20s", len(got), got)
	}
	if len(s.known) > maxCookies {
		t.Errorf("%d cookies", len(s.known))
	}
	s.Learn(get("", "/"), &wire.SessionInfo{SetCookie: []string{"c0=new"}})
	if got := s.Cookie(get("", "/")); !strings.Contains(got, "c0=new") {
		t.Errorf("a known one is not changed: %.20s", got)
	}
}

// FuzzCookie holds what a site sets against what goes out: one header line, within bounds, to the site's host alone.
func FuzzCookie(f *testing.F) {
	f.Add("a=1; Path=/; HttpOnly", "/x", "/login")
	f.Add("a=\"1\r\n2\"; Domain=evil.example", "/wp-admin/", "http://evil.example/login")
	f.Fuzz(func(t *testing.T, line, target, location string) {
		s := newSession("site.example", "", Place{path: "/login"})
		s.Learn(get("", target), &wire.SessionInfo{SetCookie: []string{line}, Location: location})
		cookie := s.Cookie(get("", target))
		for i := range len(cookie) {
			if cookie[i] < ' ' || cookie[i] >= 0x7f {
				t.Fatalf("%q", cookie)
			}
		}
		if len(cookie) > maxCookieHeader || s.Cookie(get("other.example", target)) != "" {
			t.Fatalf("%q", cookie)
		}
	})
}
