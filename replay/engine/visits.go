package engine

import (
	"iter"
	"sync"
)

// visits hands out the visits of a sequence. It keeps as many as there are users, to live through them again when the log has
// fewer, or ends before the run does.
type visits struct {
	mu      sync.Mutex
	pull    func() (Visit, bool)
	stop    func()
	kept    []Visit
	given   int
	users   int
	forEver bool
	ended   bool
}

func newVisits(seq iter.Seq[Visit], users int, forEver bool, quit <-chan struct{}) *visits {
	v := &visits{users: users, forEver: forEver}
	v.pull, v.stop = iter.Pull(seq)
	go func() {
		<-quit
		v.mu.Lock()
		defer v.mu.Unlock()
		v.ended = true
		v.stop()
	}()
	return v
}

// next gives a visit, or nil when there is none left to live through.
func (v *visits) next() Visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		if visit, ok := v.pull(); ok {
			if len(v.kept) < v.users {
				v.kept = append(v.kept, visit)
			}
			v.given++
			return visit
		}
		v.ended = true
	}
	if len(v.kept) == 0 || (!v.forEver && v.given >= v.users) {
		return nil
	}
	visit := v.kept[v.given%len(v.kept)]
	v.given++
	return visit
}
