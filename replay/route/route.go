// Package route names the kind of a request: "page", "image", "login". Names are few, so that they can head a
// table, and never hold anything of a request's own: tokens and searches stay in the log.
package route

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
)

// Limit is the number of names in addition to Other.
const Limit = 64

// Other is the name of what has no better one.
const Other = "other"

// Namer gives requests the number of their route. Numbers are given out in the order in which routes appear.
type Namer struct {
	rules    []Rule
	numbers  map[string]uint16 // of names given out
	reserved map[string]bool   // names for which room is kept
	segments int               // names still free for first path segments
	names    atomic.Pointer[[]string]
	lower    []byte
}

// New returns a Namer that tries the user's rules before its own.
func New(rules []Rule) *Namer {
	reserved := map[string]bool{}
	for _, r := range rules {
		reserved[r.Name] = true
	}
	for i := range kinds {
		reserved[kinds[i].name] = true
	}
	delete(reserved, Other)
	n := &Namer{rules: rules, numbers: map[string]uint16{}, reserved: reserved, segments: Limit - len(reserved)}
	n.names.Store(&[]string{})
	return n
}

// Names returns the routes so far in the order of their numbers. It may be called from any goroutine; the slice is
// not changed afterwards.
func (n *Namer) Names() []string { return *n.names.Load() }

// Route returns the number of the target's route. Rules see the target as it was logged, the kinds only its path.
// Not safe for concurrent use.
func (n *Namer) Route(target []byte) uint16 {
	for i := range n.rules {
		if n.rules[i].pattern.Match(target) {
			return n.number(n.rules[i].Name)
		}
	}
	path, query := split(target)
	n.lower = appendLower(n.lower[:0], path)
	if kind := kindOf(n.lower, query); kind != "" {
		return n.number(kind)
	}
	segment := firstSegment(n.lower)
	if number, ok := n.numbers[string(segment)]; ok {
		return number
	}
	if n.segments == 0 || !harmless(segment) {
		return n.number(Other)
	}
	if !n.reserved[string(segment)] && string(segment) != Other {
		n.segments--
	}
	return n.number(string(segment))
}

func (n *Namer) number(name string) uint16 {
	if number, ok := n.numbers[name]; ok {
		return number
	}
	old := n.Names()
	number := uint16(len(old))
	names := append(old[:len(old):len(old)], name)
	n.names.Store(&names)
	n.numbers[name] = number
	return number
}

// split cuts a target into path and query. The absolute form ("http://host/path") and the one that only looks
// like it ("//host/path" is a path) are distinguished as RFC 9112, section 3.2, does.
func split(target []byte) (path, query []byte) {
	if scheme := bytes.Index(target, []byte("://")); scheme > 0 && target[0] != '/' && bytes.IndexByte(target[:scheme], '?') < 0 {
		rest := target[scheme+3:]
		if at := bytes.IndexAny(rest, "/?#"); at >= 0 {
			target = rest[at:]
		} else {
			target = []byte("/")
		}
	}
	if at := bytes.IndexByte(target, '#'); at >= 0 {
		target = target[:at]
	}
	if at := bytes.IndexByte(target, '?'); at >= 0 {
		return target[:at], target[at+1:]
	}
	return target, nil
}

// No kind is found further into a path than this; a URI of a megabyte costs no more than a short one.
const maxPathBytes = 1024

func appendLower(into, path []byte) []byte {
	if len(path) > maxPathBytes {
		// Both ends tell the kind: the folders in front, the file type at the end.
		into = appendLower(into, path[:maxPathBytes/2])
		return appendLower(into, path[len(path)-maxPathBytes/2:])
	}
	for _, c := range path {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		into = append(into, c)
	}
	return into
}

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

const maxSegment = 24

// firstSegment returns the text up to the first slash, without leading slashes.
func firstSegment(path []byte) []byte {
	path = bytes.TrimLeft(path, "/")
	if at := bytes.IndexByte(path, '/'); at >= 0 {
		return path[:at]
	}
	return path
}

// harmless reports whether a segment can serve as a name: short, plain, and a word rather than a number or token.
// A word has letters in it, at most four digits, and does not change between the two more than twice.
func harmless(segment []byte) bool {
	if len(segment) == 0 || len(segment) > maxSegment {
		return false
	}
	letters, digits, changes := 0, 0, 0
	var before byte
	vowels, run, longest := 0, 0, 0
	for _, c := range segment {
		var class byte
		switch {
		case 'a' <= c && c <= 'z':
			letters++
			class = 'a'
			if bytes.IndexByte([]byte("aeiouy"), c) >= 0 {
				vowels++
				run = 0
			} else {
				run++
				longest = max(longest, run)
			}
		case '0' <= c && c <= '9':
			digits++
			class = '0'
		case c == '-' || c == '_':
			run = 0
			continue
		default:
			return false
		}
		if before != 0 && class != before {
			changes++
		}
		before = class
	}
	if longest > 5 || letters > 4 && vowels == 0 { // no word in any of the languages that spell like this
		return false
	}
	return letters > 0 && digits <= 4 && changes <= 2 && !hexadecimal(segment)
}

// hexadecimal finds hashes and parts of UUIDs: eight or more hexadecimal digits, some of them numbers.
func hexadecimal(segment []byte) bool {
	digits := 0
	for _, c := range segment {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'f', c == '-':
		default:
			return false
		}
	}
	return len(segment) >= 8 && digits > 0
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

func contains(b []byte, part string) bool { return bytes.Contains(b, []byte(part)) }

// hasParam reports whether the query has a parameter that begins with param ("s=").
func hasParam(query []byte, param string) bool {
	for len(query) > 0 {
		if hasPrefix(query, param) {
			return true
		}
		at := bytes.IndexByte(query, '&')
		if at < 0 {
			return false
		}
		query = query[at+1:]
	}
	return false
}
