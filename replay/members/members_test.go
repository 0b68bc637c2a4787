package members

import (
	"regexp"
	"strings"
	"testing"

	"plimsoll/replay/accesslog"
)

func TestParseAccounts(t *testing.T) {
	for _, c := range []struct {
		why, text string
		names     string
		says      string // of the error; "" none
	}{
		{"one a line", "anna:secret\nbert:secret\n", "anna bert", ""},
		{"comments, empty lines and Windows' ends of lines", "# ours\r\n\r\nanna:secret\r\n", "anna", ""},
		{"a password has colons and blanks", "anna: a:b \n", "anna", ""},
		{"an address as the name", "anna@example.org:x", "anna@example.org", ""},
		{"no password", "anna:\n", "", "line 1 is not an account: write NAME:PASSWORD"},
		{"no colon: the line may be a password and is not shown", "hunter2\n", "", "line 1 is not an account"},
		{"the same name twice", "anna:x\n\nanna:y\n", "anna", "line 3 has the same name as line 1"},
		{"all problems at once", "x\nanna:x\n:y\n", "anna", "line 3 is not an account"},
		{"an empty file", "# nobody\n", "", "holds no account"},
	} {
		accounts, err := ParseAccounts(c.text)
		var names []string
		for _, a := range accounts {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%s: %q", c.why, got)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.why, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the line", c.why)
		}
	}
	if accounts, _ := ParseAccounts("anna: a:b \n"); accounts[0].password != " a:b " {
		t.Errorf("the password is %q", accounts[0].password)
	}
}

func TestMarks(t *testing.T) {
	own := &Signs{Match: []*regexp.Regexp{regexp.MustCompile(`^/account/`)}, Login: Place{path: "/enter"}}
	for _, c := range []struct {
		why, method, target, user string
		status                    uint16
		want                      bool
	}{
		{"a page", "GET", "/news", "", 200, false},
		{"the log has a user", "GET", "/news", "anna", 200, true},
		{"a page of the administration", "GET", "/wp-admin/edit.php?post_type=page", "", 200, true},
		{"its front page, in a folder", "GET", "/blog/wp-admin/", "", 200, true},
		{"a guest who was sent away", "GET", "/wp-admin/", "", 302, false},
		{"a format without statuses", "GET", "/wp-admin/", "", 0, true},
		{"guests use this too", "POST", "/wp-admin/admin-ajax.php", "", 200, false},
		{"the login page needs its files", "GET", "/wp-admin/load-styles.php?c=0", "", 200, false},
		{"and its style", "GET", "/wp-admin/css/login.min.css", "", 200, false},
		{"a name in a query is no page", "GET", "/?next=/wp-admin/", "", 200, false},
		{"WordPress let somebody in", "POST", "/wp-login.php", "", 302, true},
		{"a robot that guesses passwords", "POST", "/wp-login.php", "", 200, false},
		{"somebody looks at the login", "GET", "/wp-login.php", "", 200, false},
		{"XenForo let somebody in", "POST", "/community/login/login", "", 303, true},
		{"XenForo without rewritten addresses", "POST", "/index.php?login/login", "", 303, true},
		{"the stand-in forum", "POST", "/index.php?login", "", 303, true},
		{"a page whose name begins so", "POST", "/login/loginhelp", "", 302, false},
		{"a login of one's own", "POST", "/enter", "", 302, true},
		{"a sign of one's own", "GET", "/account/alerts", "", 200, true},
	} {
		r := &accesslog.Request{Method: []byte(c.method), User: []byte(c.user), Status: c.status}
		if got := own.Marks(r, 1, []byte(c.target)); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

func TestAShareIsDrawnBySeed(t *testing.T) {
	count := func(s Signs) (n int, first uint64) {
		for client := range uint32(10_000) {
			if s.Marks(&accesslog.Request{User: []byte("anna")}, client, nil) {
				n++
				if client < 64 {
					first |= 1 << client
				}
			}
		}
		return n, first
	}
	n, first := count(Signs{Share: 0.3, Seed: 1})
	if n < 2800 || n > 3200 {
		t.Errorf("a share of 0.3 is %d of 10,000", n)
	}
	if _, again := count(Signs{Share: 0.3, Seed: 1}); again != first {
		t.Error("the same seed draws others")
	}
	if _, other := count(Signs{Share: 0.3, Seed: 2}); other == first {
		t.Error("another seed draws the same")
	}
	if all, _ := count(Signs{Share: 1, Seed: 1}); all != 10_000 {
		t.Errorf("all are %d of 10,000", all)
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		why, place, from, location string
		want                       bool
	}{
		{"WordPress asks for a login", "/wp-login.php", "/wp-admin/", "https://site/wp-login.php?redirect_to=x&reauth=1", true},
		{"relative", "/wp-login.php", "/wp-admin/", "../wp-login.php", true},
		{"elsewhere", "/wp-login.php", "/old", "/new", false},
		{"no redirect", "/wp-login.php", "/old", "", false},
		{"the login sends to itself", "/login/", "/login", "/login/", false},
		{"below the login", "/login/", "/account/", "/login/two-step", true},
		{"a name that begins so", "/login/", "/x", "/login-help", false},
		{"a query is the place", "/index.php?login/", "/index.php?account/", "/index.php?login/&redirect=x", true},
		{"another query", "/index.php?login/", "/index.php?account/", "/index.php?logins", false},
		{"no address", "/login/", "/x", "http://[", false},
		{"a target that is not a path", "/login/", "*", "/login/", true},
	} {
		place, ok := ParsePlace(c.place)
		if !ok {
			t.Fatal(c.place)
		}
		if got := place.leadsHere(c.from, c.location); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
	for _, bad := range []string{"", "login", "http://site/login", "//site/login", "/a b", "/a\r\nb", "/ä"} {
		if _, ok := ParsePlace(bad); ok {
			t.Errorf("%q is a place", bad)
		}
	}
}
