package engine

import (
	"context"
	"sync"
)

// visits hands out the visits of a sequence. It keeps as many as there are users, to use them again when the log has
// fewer or ends before the run does.
type visits struct {
	mu      sync.Mutex
	coming  *supply[Visit]
	kept    []Visit
	given   int
	users   int
	forEver bool
}

func newVisits(stop context.Context, coming *supply[Visit], users int, forEver bool) *visits {
	coming.ready(stop)
	return &visits{coming: coming, users: users, forEver: forEver}
}

// next returns a visit; nil when none is left, and yet where one may come.
func (v *visits) next() (visit Visit, yet bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	visit, ok := v.coming.peek()
	switch {
	case ok:
		v.coming.drop()
		if len(v.kept) < v.users {
			v.kept = append(v.kept, visit)
		}
		v.given++
		return visit, false
	case !v.coming.over:
		return nil, true
	case len(v.kept) == 0 || (!v.forEver && v.given >= v.users):
		return nil, false
	}
	visit = v.kept[v.given%len(v.kept)]
	v.given++
	return visit, false
}
