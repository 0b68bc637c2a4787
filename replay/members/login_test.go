package members

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
)

// A forum's form, which goes to a query and names its fields as XenForo does.
const forumForm = `<form action="index.php?login/login" method="post"><input type="hidden" name="_xfToken" value="t">
<input name="login"><input type="password" name="password"></form>`

func TestLogIn(t *testing.T) {
	letIn := func(location, cookie string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if _, err := r.Cookie("csrf"); err != nil || r.PostFormValue("_xfToken") != "t" || r.PostFormValue("login") != "anna" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			if cookie != "" {
				w.Header().Set("Set-Cookie", cookie)
			}
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusSeeOther)
		}
	}
	for _, c := range []struct {
		why, page, at string
		login         http.HandlerFunc
		says          string // of the error; "" none
	}{
		{"a forum without rewritten addresses", "", "/index.php?login/", letIn("/", "user=1; Path=/"), ""},
		{"one that shows the login again to a member", "", "/index.php?login", letIn("index.php?login", "user=1"), ""},
		{"a login in a folder", "/forum/login/", "/forum/login/", letIn("/", "user=1; Path=/"), ""},
		{"a second step", "", "/index.php?login/", letIn("/index.php?login/two-step", "user=1"), `the site does not let in "anna"`},
		{"the form again", "", "/login/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, forumForm) }, `the site does not let in "anna"`},
		{"cookies of another host", "", "/login/", letIn("/", ""), "gives no cookie for 127.0.0.1"},
		{"cookies of another domain", "", "/login/", letIn("/", "user=1; Domain=evil.example"), "gives no cookie for 127.0.0.1"},
		{"a site that is overloaded", "", "/login/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "answers 503 to a login"},
		{"a login that hangs up", "", "/login/", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, `account "anna" cannot be logged in`},
	} {
		t.Run(c.why, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					c.login(w, r)
				case r.RequestURI == c.at:
					w.Header().Set("Set-Cookie", "csrf=1; Path=/")
					fmt.Fprint(w, forumForm)
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			to, err := target.New(context.Background(), server.URL, "", false)
			if err != nil {
				t.Fatal(err)
			}
			headers, _ := wire.ParseHeaders(nil)
			site := &Site{Target: to, Headers: headers, Timeout: 10 * time.Second}
			if c.page != "" {
				site.Login, _ = ParsePlace(c.page)
			}
			if err := site.Find(context.Background()); err != nil || site.Login.String() != c.at {
				t.Fatalf("%v, found at %s", err, site.Login)
			}
			all, err := site.LogIn(context.Background(), []uint32{7}, []Account{{"anna", "s3cret"}, {"bert", "x"}}, func() {})
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || len(all) != 1 || !strings.Contains(all[7].Cookie(get("", "/")), "user=1") {
				t.Errorf("%v, %v", err, all)
			}
		})
	}
}

const wordpress = `<body class="login"><form action="/search"><input name="s"></form>
<form name="loginform" action="http://site.example/wp-login.php" method="post">
<input type="text" name="log" id="user_login" value=""><input type="password" name="pwd">
<input name="rememberme" type="checkbox" value="forever"><input type="submit" name="wp-submit" value="Log In">
<input type="hidden" name="redirect_to" value="http://site.example/wp-admin/"><input type="hidden" name="testcookie" value="1">
</form>`

const xenforo = `<form action="/register" method="post"><input name="email" type="email"><input type="password" name="a">
<input type="password" name="b"></form>
<form action="/login/login" method="POST"><input type="text" name="login"><input type=password name="password">
<input type="hidden" name="_xfToken" value="1,a&amp;b"></form>`

func TestReadForm(t *testing.T) {
	for _, c := range []struct {
		why, page, action, filled string // filled "": no form is found
	}{
		{"WordPress", wordpress, "http://site.example/wp-login.php",
			"log=anna&pwd=a%26b&redirect_to=http%3A%2F%2Fsite.example%2Fwp-admin%2F&testcookie=1"},
		{"XenForo, below a form for people who register", xenforo, "/login/login", "_xfToken=1%2Ca%26b&login=anna&password=a%26b"},
		{"a form without an end", `<form method=post><input name=n><input type=password name=p>`, "", "n=anna&p=a%26b"},
		{"a form that would show the password in its address", `<form><input name=n><input type=password name=p></form>`, "", ""},
		{"no form", "<p>hello", "", ""},
		{"a field outside", `<input name=n><form method=post><input type=password name=p></form>`, "", ""},
		{"a comment", `<!--` + xenforo + `-->`, "", ""},
	} {
		f, ok := readForm([]byte(c.page))
		if ok != (c.filled != "") {
			t.Errorf("%s: found %v", c.why, ok)
			continue
		}
		if ok && (f.action != c.action || f.filled(Account{"anna", "a&b"}) != c.filled) {
			t.Errorf("%s: %s %s", c.why, f.action, f.filled(Account{"anna", "a&b"}))
		}
	}
}

func TestAFormOfTenThousandFieldsIsCut(t *testing.T) {
	page := `<form method=post><input name=n><input type=password name=p>` +
		strings.Repeat(`<input type=hidden name=x value="`+strings.Repeat("y", 5000)+`">`, 10) +
		strings.Repeat(`<input type=hidden name=h value=1>`, 200)
	if f, ok := readForm([]byte(page)); !ok || f.hidden.Has("x") {
		t.Errorf("%v, %d fields", ok, len(f.hidden))
	}
}

func FuzzReadForm(f *testing.F) {
	f.Add(wordpress)
	f.Add(xenforo)
	f.Fuzz(func(t *testing.T, page string) {
		form, ok := readForm([]byte(page))
		if ok && (form.name == "" || form.password == "") {
			t.Errorf("%+v", form)
		}
		if filled := form.filled(Account{"n", "p"}); strings.ContainsAny(filled, "\r\n ") {
			t.Errorf("%q", filled)
		}
	})
}
