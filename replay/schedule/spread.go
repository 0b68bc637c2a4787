package schedule

import (
	"math"
	"math/rand/v2"
)

// spreadBatch bounds how many entries of one instant are held; more are spread in batches, each over the whole tick.
const spreadBatch = 1 << 17

// Spread moves entries of the same instant over the tick that the log's clock could not tell apart (tickNS, one second
// for most logs): to the order statistics of uniform instants, in the order of the log, as arrivals are that know
// nothing of each other. The same seed gives the same instants. Entries must be sorted by instant.
func Spread[T any](in Seq[T], tickNS int64, seed uint64, notes *Notes) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		random := rand.New(rand.NewPCG(seed, 0x5eed))
		var group []Entry[T]
		flush := func() bool {
			last := 0.0
			for i := range group {
				last = nextOrderStatistic(last, len(group)-i, random.Float64())
				group[i].AtNS += min(int64(last*float64(tickNS)), tickNS-1)
				if !yield(group[i]) {
					return false
				}
			}
			notes.Spread += uint64(len(group))
			clear(group)
			group = group[:0]
			return true
		}
		for e := range in {
			if len(group) > 0 && (e.AtNS != group[0].AtNS || len(group) == spreadBatch) {
				if !flush() {
					return
				}
			}
			group = append(group, e)
		}
		flush()
	}
}

// nextOrderStatistic draws the smallest of `left` uniform numbers between last and 1, from one uniform number u:
// P(min > x) = ((1−x)/(1−last))^left (Devroye, Non-Uniform Random Variate Generation, 1986, V.3).
func nextOrderStatistic(last float64, left int, u float64) float64 {
	return 1 - (1-last)*math.Pow(1-u, 1/float64(left))
}
