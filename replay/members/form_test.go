package members

import (
	"strings"
	"testing"
)

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
		why, page, action, filled string // filled "": there is no form
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
