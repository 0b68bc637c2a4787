package route

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Rule is a user's own: targets that match the pattern bear the name.
type Rule struct {
	Name    string
	pattern *regexp.Regexp
}

var ruleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// MaxNames is how many different names rules may have: the rest of Limit is kept for the built-in kinds.
var MaxNames = Limit - len(kinds)

// ParseRules reads rules of the form NAME=REGEX and reports all problems at once. Several may bear one name.
func ParseRules(texts []string) ([]Rule, error) {
	var rules []Rule
	var problems []error
	names := map[string]bool{}
	for _, text := range texts {
		rule, err := parseRule(text)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		names[rule.Name] = true
		rules = append(rules, rule)
	}
	if len(names) > MaxNames {
		problems = append(problems, fmt.Errorf("--route: %d names, at most %d are possible: give several patterns one name",
			len(names), MaxNames))
	}
	return rules, errors.Join(problems...)
}

func parseRule(text string) (Rule, error) {
	name, pattern, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return Rule{}, fmt.Errorf("--route %q: it has no '=': write NAME=REGEX, such as --route shop='^/shop/'", text)
	case !ruleName.MatchString(name):
		return Rule{}, fmt.Errorf("--route %q: the name must be 1 to 32 letters, digits, '.', '_' or '-', and begin with a letter or digit", text)
	case pattern == "":
		return Rule{}, fmt.Errorf("--route %q: the pattern is empty and would match every request: write %s='.' if that is what you want",
			text, name)
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return Rule{}, fmt.Errorf("--route %q: %w", text, err)
	}
	return Rule{Name: name, pattern: compiled}, nil
}
