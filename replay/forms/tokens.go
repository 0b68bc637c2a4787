package forms

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Bounds of what is kept of a page. A page of WordPress's administration has some thirty tokens.
const (
	maxTokens     = 256
	maxTokenBytes = 4 << 10
)

// Tokens are the tokens of a page: by form, since several forms have one of the same name.
type Tokens struct{ list []token }

type token struct {
	action      string // the target that the form goes to; "": in no form
	name, value string
}

// ReadTokens finds the tokens of the page at a target: hidden fields with the names of tokens, and XenForo's attribute
// data-csrf, which is what its scripts send as _xfToken.
func ReadTokens(page []byte, target string) Tokens {
	var found Tokens
	action := ""
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return found
		case html.EndTagToken:
			if name, _ := tokens.TagName(); string(name) == "form" {
				action = ""
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch tag := tokens.Token(); tag.Data {
			case "form":
				action = targetOf(target, Attribute(tag, "action"))
			case "input":
				if name := Attribute(tag, "name"); tokenName.MatchString(name) {
					found.add(token{action, name, Attribute(tag, "value")})
				}
			case "html":
				found.add(token{"", "_xfToken", Attribute(tag, "data-csrf")})
			}
		}
	}
}

func (t *Tokens) add(one token) {
	if one.value != "" && len(one.name)+len(one.value) <= maxTokenBytes && len(t.list) < maxTokens {
		t.list = append(t.list, one)
	}
}

// IsEmpty reports whether a page had none.
func (t Tokens) IsEmpty() bool { return len(t.list) == 0 }

// Of returns the token of a name for a request to a target: that of the form which goes there, else of one that goes to
// its path, else the first one of the page.
func (t Tokens) Of(target, name string) (value string, ok bool) {
	target = targetOf(target, target)
	best := 0
	for _, one := range t.list {
		if one.name == name && one.fits(target) > best {
			value, best = one.value, one.fits(target)
		}
	}
	return value, best > 0
}

// fits returns how well a token fits a target, from 1 to 3.
func (t token) fits(target string) int {
	path, _, _ := strings.Cut(target, "?")
	ownPath, _, _ := strings.Cut(t.action, "?")
	switch {
	case t.action == target:
		return 3
	case ownPath == path:
		return 2
	}
	return 1
}

// targetOf returns the target of an address on the page at another target.
func targetOf(target, address string) string {
	base, err := url.Parse(target)
	if err != nil {
		return ""
	}
	to, err := base.Parse(strings.TrimSpace(address))
	if err != nil {
		return ""
	}
	return to.RequestURI()
}

// Attribute returns the value of an attribute of a tag; "" where it has none of this name.
func Attribute(tag html.Token, name string) string {
	for _, a := range tag.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
