// Package forms reads what requests carry, forms and JSON: secrets in them are replaced before anything is done with them,
// and tokens against forged requests are exchanged for those of the page that a client last had. It is pure.
package forms

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// Reasons for not sending a request with a body, as in summary.json under "skipped".
const (
	SkipPartial  = "body_not_recorded" // or not the whole of it
	SkipKind     = "body_unreadable"   // no form and no JSON, so that secrets in it are not found
	SkipPassword = "password_in_body"
)

// The kinds of bodies that are read.
const (
	urlencoded  = "application/x-www-form-urlencoded"
	multiparted = "multipart/form-data"
	jsonText    = "application/json"
)

// Body is what a request carries.
type Body struct {
	Type string // the content type, rewritten
	Text string
}

// errPassword says that a body has a password.
var errPassword = errors.New("a password")

// Clean returns a recorded body without its secrets, or why it is not sent. Tokens are empty in it.
func (r Rules) Clean(contentType string, text []byte) (b Body, skip string) {
	edited, kind, err := edit(contentType, text, func(name, value string) (string, error) {
		switch verdict, to := r.judge(name, value); verdict {
		case refuse:
			return "", errPassword
		case replace:
			return to, nil
		}
		return value, nil
	})
	switch {
	case errors.Is(err, errPassword):
		return Body{}, SkipPassword
	case err != nil:
		return Body{}, SkipKind
	}
	return Body{kind, edited}, ""
}

// Exchange returns a body with the tokens that current knows in place of those that are empty.
func (r Rules) Exchange(b Body, current func(name string) (string, bool)) string {
	edited, _, err := edit(b.Type, []byte(b.Text), func(name, value string) (string, error) {
		if value == "" && r.isToken(name) {
			if token, ok := current(name); ok {
				return token, nil
			}
		}
		return value, nil
	})
	if err != nil {
		return b.Text
	}
	return edited
}

// change returns the value that a field is to have.
type change func(name, value string) (string, error)

// edit changes the fields of a body. It returns the body, and its content type as it is to be sent.
func edit(contentType string, text []byte, to change) (edited, kind string, err error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", "", err
	}
	switch {
	case kind == urlencoded:
		edited, err = editPairs(string(text), to)
		return edited, kind, err
	case kind == multiparted && params["boundary"] != "":
		edited, err = editParts(text, params["boundary"], to)
		return edited, mime.FormatMediaType(kind, map[string]string{"boundary": params["boundary"]}), err
	case kind == jsonText || strings.HasSuffix(kind, "+json"):
		edited, err = editJSON(text, to)
		return edited, kind, err
	}
	return "", "", errors.New("neither a form nor JSON")
}

// editPairs changes a=b&c=d. What stays is as it was, byte for byte.
func editPairs(text string, to change) (string, error) {
	pairs := strings.Split(text, "&")
	for i, pair := range pairs {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		if err != nil || err2 != nil {
			return "", errors.New("an invalid escape")
		}
		changed, err := to(name, value)
		if err != nil {
			return "", err
		}
		if changed != value {
			pairs[i] = rawName + "=" + url.QueryEscape(changed)
		}
	}
	return strings.Join(pairs, "&"), nil
}

// editParts changes the parts of a form with files (RFC 7578); the files stay.
func editParts(text []byte, boundary string, to change) (string, error) {
	reader := multipart.NewReader(bytes.NewReader(text), boundary)
	var out strings.Builder
	writer := multipart.NewWriter(&out)
	if err := writer.SetBoundary(boundary); err != nil {
		return "", err
	}
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			err = writer.Close()
			return out.String(), err
		}
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return "", err
		}
		if part.FileName() == "" {
			changed, err := to(part.FormName(), string(content))
			if err != nil {
				return "", err
			}
			content = []byte(changed)
		}
		into, err := writer.CreatePart(part.Header)
		if err == nil {
			_, err = into.Write(content)
		}
		if err != nil {
			return "", err
		}
	}
}

// editJSON changes the texts and numbers in a JSON text, by the names of their members.
func editJSON(text []byte, to change) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("more than one JSON text")
	}
	value, err := editValue("", value, to)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func editValue(name string, value any, to change) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		return to(name, v)
	case json.Number:
		changed, err := to(name, v.String())
		if err != nil || changed == v.String() {
			return v, err
		}
		return changed, nil
	case []any:
		for i := range v {
			if v[i], err = editValue(name, v[i], to); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for member := range v {
			if v[member], err = editValue(member, v[member], to); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// Rules say what becomes of the fields of a recorded body, by their names.
type Rules struct{ own []rule }

type rule struct {
	given string // the name, as it was given
	name  *regexp.Regexp
	value string
}

// ParseRules reads rules as they are given: 'FIELD=VALUE', where FIELD is a regular expression for the whole name. It
// returns all that is wrong.
func ParseRules(texts []string) (Rules, error) {
	var r Rules
	var wrong []error
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		re, err := regexp.Compile("^(?:" + name + ")$")
		switch {
		case !found || name == "":
			wrong = append(wrong, fmt.Errorf("--replace-field %q is not a rule: write FIELD=VALUE, such as phone=0", text))
		case err != nil:
			wrong = append(wrong, fmt.Errorf("--replace-field %q: the part before = is not a regular expression: %w", text, err))
		default:
			r.own = append(r.own, rule{name, re, value})
		}
	}
	return r, errors.Join(wrong...)
}

// The names that have a meaning everywhere. A field of one's own rules is none of these.
var (
	passwordName = regexp.MustCompile(`(?i)(?:pass(?:w(?:or)?d|phrase|[12]|$)|pwd|(?:^|[_-])pw$)`)
	mailName     = regexp.MustCompile(`(?i)mail`)
	tokenName    = regexp.MustCompile(`(?i)(?:nonce|token|csrf|xsrf)`)
	secretName   = regexp.MustCompile(`(?i)(?:secret|(?:^|[_-])(?:otp|sid|key)$|session|credential|card_?number|cvc)`)
)

// verdict is what becomes of a field.
type verdict uint8

const (
	keep verdict = iota
	replace
	refuse // nothing that has this field is sent
)

// judge returns what becomes of a field, and its new value.
func (r Rules) judge(name, value string) (verdict, string) {
	for _, one := range r.own {
		if one.name.MatchString(name) {
			return replace, one.value
		}
	}
	switch {
	case value == "":
		return keep, ""
	case passwordName.MatchString(name):
		return refuse, ""
	case tokenName.MatchString(name), secretName.MatchString(name):
		return replace, ""
	case mailName.MatchString(name) && strings.Contains(value, "@"):
		return replace, standIn(value)
	}
	return keep, ""
}

// standIn returns the address that stands for a mail address: always the same for the same, and of nobody (RFC 2606).
func standIn(address string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(address))))
	return fmt.Sprintf("visitor-%x@example.invalid", sum[:6])
}

// isToken reports whether a field is exchanged for what the client's last page has. Those of one's own rules are not.
func (r Rules) isToken(name string) bool {
	for _, one := range r.own {
		if one.name.MatchString(name) {
			return false
		}
	}
	return tokenName.MatchString(name)
}

// Names returns the names of fields as the rules have them. Their values may be secrets.
func (r Rules) Names() []string {
	names := []string{}
	for _, one := range r.own {
		names = append(names, one.given)
	}
	return names
}

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
