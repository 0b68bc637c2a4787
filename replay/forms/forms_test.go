package forms

import (
	"strings"
	"testing"
)

func rulesOf(t *testing.T, texts ...string) Rules {
	t.Helper()
	r, err := ParseRules(texts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const multipartBody = "--b1\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nHello  \r\n" +
	"--b1\r\nContent-Disposition: form-data; name=\"_xfToken\"\r\n\r\n1700,abc\r\n" +
	"--b1\r\nContent-Disposition: form-data; name=\"token\"; filename=\"token.txt\"\r\nContent-Type: text/plain\r\n\r\nkept\r\n--b1--\r\n"

func TestClean(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		why, kind, text string
		rules           []string
		want, wantKind  string
		skip            string
	}{
		{"a comment stays as it is, byte for byte", form, "comment=So+%c3%a9%21&comment_post_ID=1&submit=", nil,
			"comment=So+%c3%a9%21&comment_post_ID=1&submit=", form, ""},
		{"a mail address becomes that of nobody, the same each time", form + "; charset=UTF-8", "email=Anna%40site.example&author=A", nil,
			"email=visitor-196e7819d690%40example.invalid&author=A", form, ""},
		{"tokens are left out", form, "_wpnonce=a1b2&_xfToken=17%2Cx&message=hi", nil, "_wpnonce=&_xfToken=&message=hi", form, ""},
		{"a password is not sent", form, "log=anna&pwd=hunter2", nil, "", "", SkipPassword},
		{"nor is that of a registration", form, "user_pass=hunter2", nil, "", "", SkipPassword},
		{"an empty password is none", form, "post_password=&title=x", nil, "post_password=&title=x", form, ""},
		{"one's own rule comes first, for passwords too", form, "pwd=hunter2&phone=555&phones=1", []string{"pwd=demo", "phone=0"},
			"pwd=demo&phone=0&phones=1", form, ""},
		{"a field whose name is escaped", form, "e%6Dail=a%40b.example", nil, "e%6Dail=visitor-ebb18a030bf1%40example.invalid", form, ""},
		{"an invalid escape", form, "a=%zz", nil, "", "", SkipKind},
		{"JSON, whose numbers stay", "application/json", `{"user":{"email":"a@b.example","nonce":"x"},"id":12345678901234567890,"t":"<b>"}`, nil,
			`{"id":12345678901234567890,"t":"<b>","user":{"email":"visitor-ebb18a030bf1@example.invalid","nonce":""}}`, "application/json", ""},
		{"a password deep in JSON", "application/json", `[{"a":[{"password":"hunter2"}]}]`, nil, "", "", SkipPassword},
		{"JSON with something behind it", "application/json", `{} {"password":"hunter2"}`, nil, "", "", SkipKind},
		{"parts: white space and files stay", "multipart/form-data; boundary=b1", multipartBody, nil,
			strings.Replace(multipartBody, "1700,abc", "", 1), "multipart/form-data; boundary=b1", ""},
		{"parts without an end", "multipart/form-data; boundary=b1", multipartBody[:60], nil, "", "", SkipKind},
		{"a body of another kind may hold anything", "text/plain", "pwd=hunter2", nil, "", "", SkipKind},
		{"no content type", "", "a=b", nil, "", "", SkipKind},
		{"a content type that would begin a header", "application/json\r\nX-Evil: 1", "{}", nil, "", "", SkipKind},
	} {
		got, skip := rulesOf(t, c.rules...).Clean(c.kind, []byte(c.text))
		if got.Text != c.want || got.Type != c.wantKind || skip != c.skip {
			t.Errorf("%s:\n%q (%s) %s, want\n%q (%s) %s", c.why, got.Text, got.Type, skip, c.want, c.wantKind, c.skip)
		}
	}
}

func TestRulesThatAreNone(t *testing.T) {
	_, err := ParseRules([]string{"phone", "=x", "[=y", "fine=1"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "fine") {
		t.Errorf("want three mistakes, got: %v", err)
	}
}

const wordpressPage = `<!doctype html><html lang="de"><body>
<form action="/wp-admin/admin-post.php"><input type="hidden" name="_wpnonce" value="first"></form>
<form action="https://site.example/wp-comments-post.php" method="post"><textarea name="comment"></textarea>
<input type="hidden" name="_wpnonce" value="second&amp;"><input name="comment_post_ID" value="1"></form>
<input type="hidden" name="loose_token" value="outside"><input name="empty_token" value=""></body></html>`

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		why, page, at, target, name, want string
	}{
		{"of the form that goes there", wordpressPage, "/?p=1", "/wp-comments-post.php", "_wpnonce", "second&"},
		{"of the first form, where none goes there", wordpressPage, "/?p=1", "/elsewhere", "_wpnonce", "first"},
		{"in no form", wordpressPage, "/?p=1", "/wp-comments-post.php", "loose_token", "outside"},
		{"a field without a value is none", wordpressPage, "/", "/", "empty_token", ""},
		{"no other field", wordpressPage, "/", "/wp-comments-post.php", "comment_post_ID", ""},
		{"XenForo's attribute", `<html data-csrf="17,ab"><body>`, "/threads/1/", "/threads/1/add-reply", "_xfToken", "17,ab"},
		{"a form without an action goes where it is", `<form><input name=csrf value=x></form>`, "/a/b?c", "/a/b?d=1", "csrf", "x"},
		{"an address of the folder", `<form action="post.php"><input name=nonce value=1></form><form><input name=nonce value=2></form>`, "/wp-admin/edit.php", "/wp-admin/post.php", "nonce", "1"},
		{"of the form that goes to the very target, where scripts are one", `<form action="index.php?login"><input name=csrf value=a></form><form action="index.php?threads/1/add-reply"><input name=csrf value=b></form>`, "/forum/index.php?threads/1", "/forum/index.php?threads/1/add-reply", "csrf", "b"},
		{"no page at all", "\x00\xff<", "/", "/", "nonce", ""},
	} {
		got, ok := ReadTokens([]byte(c.page), c.at).Of(c.target, c.name)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.why, got, ok, c.want)
		}
	}
}

func TestExchange(t *testing.T) {
	current := func(name string) (string, bool) { return "now&" + name, name != "unknown_token" }
	r := rulesOf(t, "own_token=mine")
	body, _ := r.Clean("application/x-www-form-urlencoded", []byte("_wpnonce=old&unknown_token=old&own_token=old&nonce_x=&comment=x"))
	const want = "_wpnonce=now%26_wpnonce&unknown_token=&own_token=mine&nonce_x=now%26nonce_x&comment=x"
	if got := r.Exchange(body, current); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzClean: whatever was recorded, no token and no password comes through, and what comes out is read again.
func FuzzClean(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", "a=b&_wpnonce=s3cret&email=x%40y")
	f.Add("multipart/form-data; boundary=b1", multipartBody)
	f.Add("application/json", `{"a":{"token":"s3cret"},"b":[1,true,null]}`)
	f.Fuzz(func(t *testing.T, kind, text string) {
		var r Rules
		body, skip := r.Clean(kind, []byte(text))
		if skip != "" {
			if body != (Body{}) {
				t.Fatalf("skipped, and yet %q", body)
			}
			return
		}
		again, skip := r.Clean(body.Type, []byte(body.Text))
		if skip != "" {
			t.Fatalf("%q as %q is not read again: %s", body.Text, body.Type, skip)
		}
		if _, _, err := edit(again.Type, []byte(again.Text), func(name, value string) (string, error) {
			if value != "" && tokenName.MatchString(name) {
				t.Errorf("%s keeps %q", name, value)
			}
			return value, nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzTokens: any page is read, within bounds.
func FuzzTokens(f *testing.F) {
	f.Add(wordpressPage, "/?p=1")
	f.Fuzz(func(t *testing.T, page, target string) {
		found := ReadTokens([]byte(page), target)
		if len(found.list) > maxTokens {
			t.Fatal("too many")
		}
		for _, one := range found.list {
			if value, ok := found.Of(target, one.name); !ok || value == "" {
				t.Fatalf("%q is not found again", one.name)
			}
		}
	})
}
