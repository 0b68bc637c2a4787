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
