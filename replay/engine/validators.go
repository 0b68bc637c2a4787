package engine

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// A logged 304 says that the browser had asked whether what it had was still good. To ask again, the engine does as browsers do: it
// keeps the validators (Last-Modified, ETag) that came with the last 200 of each target, for all clients together, and sends them
// back. A server that compares dates for equality, as nginx does, answers 304 to nothing else.

// maxValidators bounds the memory; past it an arbitrary target is forgotten.
const maxValidators = 1 << 16

// validator is what a 200 said of its version. The arrays keep it free of pointers.
type validator struct {
	modified [32]byte
	etag     [64]byte
	nm, ne   uint8
}

func (v *validator) lastModified() string { return string(v.modified[:v.nm]) }
func (v *validator) entityTag() string    { return string(v.etag[:v.ne]) }
func (v *validator) empty() bool          { return v.nm == 0 && v.ne == 0 }

// set keeps a header's value in a field, if it fits and can be sent back.
func (v *validator) set(field []byte, length *uint8, value []byte) {
	if len(value) <= len(field) && isFieldValue(value) {
		*length = uint8(copy(field, value))
	}
}

type validators struct {
	wanted *atomic.Bool // nil: always
	seed   maphash.Seed
	mu     sync.Mutex
	of     map[uint64]validator
}

func newValidators(wanted *atomic.Bool) *validators {
	return &validators{wanted: wanted, seed: maphash.MakeSeed(), of: map[uint64]validator{}}
}

func (v *validators) key(s *Shot) uint64 {
	return maphash.String(v.seed, s.Host) ^ maphash.String(v.seed, s.Target)*31
}

// learn keeps the validator of a 200.
func (v *validators) learn(s *Shot, version validator) {
	if version.empty() || (v.wanted != nil && !v.wanted.Load()) {
		return
	}
	key := v.key(s)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.of) >= maxValidators {
		if _, known := v.of[key]; !known {
			for any := range v.of {
				delete(v.of, any)
				break
			}
		}
	}
	v.of[key] = version
}

// recall puts the validator of a request's target into the request, where there is one.
func (v *validators) recall(s *Shot) {
	key := v.key(s)
	v.mu.Lock()
	version, known := v.of[key]
	v.mu.Unlock()
	if known {
		s.ifModifiedSince, s.ifNoneMatch = version.lastModified(), version.entityTag()
	}
}
