package schedule

import "iter"

// Visits gathers what each client did into visits: its requests in order, until it paused for longer than pauseNS. To
// hold no more than `window` entries at a time, a log longer than that is cut into stretches, and a visit that reaches
// over the cut is two. Visits come in the order of their first requests within a stretch. Entries must be sorted by
// instant.
func Visits[T any](in Seq[T], client func(T) uint64, pauseNS int64, window int) iter.Seq[[]Entry[T]] {
	return func(yield func([]Entry[T]) bool) {
		s := stretch[T]{latest: map[uint64]int{}}
		for e := range in {
			s.add(e, client(e.Value), pauseNS)
			if s.entries == window {
				if !s.yield(yield) {
					return
				}
				s = stretch[T]{latest: map[uint64]int{}}
			}
		}
		s.yield(yield)
	}
}

type stretch[T any] struct {
	visits  [][]Entry[T]
	latest  map[uint64]int // a client's last visit
	entries int
}

func (s *stretch[T]) add(e Entry[T], client uint64, pauseNS int64) {
	s.entries++
	if i, ok := s.latest[client]; ok {
		visit := s.visits[i]
		if e.AtNS-visit[len(visit)-1].AtNS <= pauseNS {
			s.visits[i] = append(visit, e)
			return
		}
	}
	s.latest[client] = len(s.visits)
	s.visits = append(s.visits, []Entry[T]{e})
}

func (s *stretch[T]) yield(yield func([]Entry[T]) bool) bool {
	for i, visit := range s.visits {
		if !yield(visit) {
			return false
		}
		s.visits[i] = nil
	}
	return true
}
