package traffic

import (
	"maps"

	"plimsoll/replay/engine"
	"plimsoll/replay/schedule"
)

// maxKept bounds how many requests are kept from one loop to the next, so that a short log gone through many times is
// read once.
const maxKept = 1 << 16

// kept are the requests of a log, ready to be sent again.
type kept struct {
	requests []engine.Request
	count    uint64
}

func (k *kept) add(s *engine.Shot) {
	k.count++
	if len(k.requests) < maxKept {
		k.requests = append(k.requests, s.Request)
	}
}

// whole says whether all requests of the log are there.
func (k *kept) whole() bool { return k.count == uint64(len(k.requests)) }

// entries give the requests once more, and count once more what the log holds besides.
func (k *kept) entries(counts Counter, skipped map[string]uint64) schedule.Seq[*engine.Shot] {
	skipped = maps.Clone(skipped)
	return func(yield func(schedule.Entry[*engine.Shot]) bool) {
		for i := range k.requests {
			if !yield(schedule.Entry[*engine.Shot]{Value: &engine.Shot{Request: k.requests[i]}}) {
				return
			}
		}
		for reason, n := range skipped {
			counts.SkipN(reason, n)
		}
	}
}
