package k6

import (
	"strings"
	"sync"
	"unicode/utf8"

	"plimsoll/replay/route"
)

const longestName = 48

// routes numbers what a script's requests are called: few names, never an address. One goroutine asks for numbers;
// names may be read by any.
type routes struct {
	kinds   *route.Namer
	numbers map[string]uint16
	mu      sync.Mutex
	names   []string
}

func newRoutes() *routes { return &routes{kinds: route.New(nil), numbers: map[string]uint16{}} }

// number returns the route of a request with these tags: its tag `step`; else `name` where the script gave one; else
// its group; else the kind of its address. Past 64 names it is `other`.
func (r *routes) number(tag func(string) string) uint16 {
	name := r.called(tag)
	if number, ok := r.numbers[name]; ok {
		return number
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) >= route.Limit && name != route.Other {
		if number, ok := r.numbers[route.Other]; ok {
			return number
		}
		name = route.Other
	}
	number := uint16(len(r.names))
	r.names = append(r.names, name)
	r.numbers[name] = number
	return number
}

func (r *routes) called(tag func(string) string) string {
	if step := tag("step"); step != "" {
		return short(step)
	}
	name := tag("name")
	if name != "" && !isAddress(name) {
		return short(name)
	}
	if group := tag("group"); group != "" {
		parts := strings.Split(group, "::")
		return short(parts[len(parts)-1])
	}
	if name == "" {
		name = tag("url")
	}
	number := r.kinds.Route([]byte(name)) // before the names are looked at, of which it may be a new one
	return r.kinds.Names()[number]
}

// all returns the names in the order of their numbers.
func (r *routes) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.names...)
}

func isAddress(name string) bool {
	return strings.HasPrefix(name, "/") || strings.Contains(name, "://") || strings.Contains(name, "?")
}

func short(name string) string {
	if utf8.RuneCountInString(name) <= longestName {
		return name
	}
	return string([]rune(name)[:longestName-1]) + "…"
}
