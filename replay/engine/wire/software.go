// What the servers of a run call themselves.

package wire

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Software collects the values of Server and X-Powered-By. Safe for concurrent use. Errors are left out: a proxy may
// have made them.
type Software struct{ server, poweredBy values }

// Server returns the distinct values of Server, sorted. They come from the site: callers trust nothing in them.
func (s *Software) Server() []string { return s.server.sorted() }

// PoweredBy returns those of X-Powered-By.
func (s *Software) PoweredBy() []string { return s.poweredBy.sorted() }

const (
	firstError    = 400
	mostValues    = 8
	maxValueBytes = 100
)

// values are the distinct values of one header, the first mostValues of them.
type values struct {
	known atomic.Pointer[[]string] // replaced, never changed
	mu    sync.Mutex               // of whoever replaces it
}

// note takes a value; of one that is known it takes a few nanoseconds and no lock.
func (v *values) note(value []byte) {
	value = value[:min(len(value), maxValueBytes)]
	if len(value) == 0 || v.has(value) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.has(value) {
		grown := append(slices.Clone(v.all()), string(value))
		v.known.Store(&grown)
	}
}

// has reports whether a value is known, or one too many.
func (v *values) has(value []byte) bool {
	all := v.all()
	for _, one := range all {
		if one == string(value) {
			return true
		}
	}
	return len(all) >= mostValues
}

func (v *values) all() []string {
	if known := v.known.Load(); known != nil {
		return *known
	}
	return nil
}

func (v *values) sorted() []string {
	found := append([]string{}, v.all()...)
	for i := range found {
		found[i] = strings.ToValidUTF8(found[i], "�")
	}
	slices.Sort(found)
	return found
}
