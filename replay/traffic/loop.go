package traffic

import (
	"maps"

	"plimsoll/replay/engine/exchange"
)

// maxHits bounds how many hits are kept from one loop to the next, so that a short log that is replayed many times is
// read once.
const maxHits = 1 << 16

// firstPass keeps the hits of the first loop through a log, ready to be sent again.
type firstPass struct {
	hits  []*exchange.LoggedRequest
	count uint64
}

func (p *firstPass) add(hit *exchange.LoggedRequest) {
	p.count++
	if len(p.hits) < maxHits {
		p.hits = append(p.hits, hit)
	}
}

// isWhole reports whether all hits of the log are there.
func (p *firstPass) isWhole() bool { return p.count == uint64(len(p.hits)) }

// entries returns the hits once more, and counts the log's other lines once more.
func (p *firstPass) entries(counts Counter, skipped map[string]uint64) sequence {
	skipped = maps.Clone(skipped)
	return func(yield func(entry) bool) {
		for _, hit := range p.hits {
			if !yield(entry{Value: hit}) {
				return
			}
		}
		for reason, n := range skipped {
			counts.SkipN(reason, n)
		}
	}
}
