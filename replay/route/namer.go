// Package route names the kind of a request: "page", "image", "login". Names are few, so that they can head a
// table, and never hold anything of a request's own: tokens and searches stay in the log.
package route

import (
	"bytes"
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
// like it ("//host/path" is a path) are told apart as RFC 9112, section 3.2, does.
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
