package members

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"plimsoll/replay/forms"
)

// Bounds of a form: a login has a handful of fields.
const (
	maxFields     = 64
	maxFieldBytes = 4 << 10
)

// form is a login form: where it goes, and what it sends. Tokens against forged requests are among its hidden fields.
type form struct {
	action         string
	hidden         url.Values
	name, password string // of the two fields that people fill in
}

// readForm finds the first form of a page that is sent by POST and asks for one name and one password. A form that asks
// for two passwords is for people who register.
func readForm(page []byte) (form, bool) {
	tokens := html.NewTokenizer(bytes.NewReader(page))
	var now *reading
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return now.done()
		case html.EndTagToken:
			if name, _ := tokens.TagName(); string(name) == "form" {
				if f, ok := now.done(); ok {
					return f, true
				}
				now = nil
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch tag := tokens.Token(); {
			case tag.Data == "form":
				if f, ok := now.done(); ok {
					return f, true
				}
				now = &reading{form: form{action: forms.Attribute(tag, "action"), hidden: url.Values{}},
					post: strings.EqualFold(forms.Attribute(tag, "method"), "post")}
			case tag.Data == "input" && now != nil:
				now.input(forms.Attribute(tag, "type"), forms.Attribute(tag, "name"), forms.Attribute(tag, "value"))
			}
		}
	}
}

// reading is a form of which more may come.
type reading struct {
	form
	post             bool
	names, passwords int
}

func (r *reading) input(kind, name, value string) {
	if name == "" || len(name)+len(value) > maxFieldBytes {
		return
	}
	switch strings.ToLower(kind) {
	case "", "text", "email":
		if r.names++; r.passwords == 0 {
			r.name = name
		}
	case "password":
		r.passwords++
		r.password = name
	case "hidden":
		if len(r.hidden) < maxFields {
			r.hidden.Add(name, value)
		}
	}
}

func (r *reading) done() (form, bool) {
	if r == nil || !r.post || r.passwords != 1 || r.name == "" {
		return form{}, false
	}
	return r.form, true
}

// filled returns what the form sends for an account.
func (f *form) filled(account Account) string {
	values := url.Values{}
	for name, value := range f.hidden {
		values[name] = value
	}
	values.Set(f.name, account.Name)
	values.Set(f.password, account.password)
	return values.Encode()
}
