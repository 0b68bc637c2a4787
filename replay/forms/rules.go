package forms

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

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
