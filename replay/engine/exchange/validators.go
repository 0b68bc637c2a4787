package exchange

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"plimsoll/replay/engine/wire"
)

// A logged 304 says that the browser had asked whether what it had was still good. To ask again, the engine does as
// browsers do: it keeps the validators (Last-Modified, ETag) that came with the last 200 of each target, for all
// clients together, and sends them back. A server that compares dates for equality, as nginx does, answers 304 to
// nothing else.

// maxValidators bounds the memory; past it an arbitrary target is forgotten.
const maxValidators = 1 << 16

// Validators keeps the validators of a run.
type Validators struct {
	wanted *atomic.Bool // nil: always
	seed   maphash.Seed
	mu     sync.Mutex
	of     map[uint64]wire.Validator
}

// NewValidators returns an empty store. It keeps nothing while wanted is false; nil stands for true.
func NewValidators(wanted *atomic.Bool) *Validators {
	return &Validators{wanted: wanted, seed: maphash.MakeSeed(), of: map[uint64]wire.Validator{}}
}

func (v *Validators) key(r *wire.Request) uint64 {
	return maphash.String(v.seed, r.Host) ^ maphash.String(v.seed, r.Target)*31
}

// learn keeps the validator of a 200.
func (v *Validators) learn(r *wire.Request, version *wire.Validator) {
	if version.Empty() || (v.wanted != nil && !v.wanted.Load()) {
		return
	}
	key := v.key(r)
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
	v.of[key] = *version
}

// recall puts the validator of a request's target into the request, where there is one.
func (v *Validators) recall(r *wire.Request) {
	key := v.key(r)
	v.mu.Lock()
	version, known := v.of[key]
	v.mu.Unlock()
	if known {
		r.Revalidate(version)
	}
}
