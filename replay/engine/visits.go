package engine

import (
	"iter"
	"sync"
)

// visits hands out the visits of a sequence. It keeps as many as there are users, to use them again when the log has
// fewer or ends before the run does.
type visits struct {
	mu      sync.Mutex
	coming  <-chan Visit
	kept    []Visit
	given   int
	users   int
	forEver bool
}

// visitsAhead is how many visits are read ahead, so that reading the log does not hold up the users.
const visitsAhead = 256

func newVisits(seq iter.Seq[Visit], users int, forEver bool, quit <-chan struct{}) *visits {
	coming := make(chan Visit, visitsAhead)
	go func() {
		defer close(coming)
		for visit := range seq {
			select {
			case coming <- visit:
			case <-quit:
				return
			}
		}
	}()
	return &visits{coming: coming, users: users, forEver: forEver}
}

// next returns a visit, or nil when none is left.
func (v *visits) next() Visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	if visit, ok := <-v.coming; ok {
		if len(v.kept) < v.users {
			v.kept = append(v.kept, visit)
		}
		v.given++
		return visit
	}
	if len(v.kept) == 0 || (!v.forEver && v.given >= v.users) {
		return nil
	}
	visit := v.kept[v.given%len(v.kept)]
	v.given++
	return visit
}
