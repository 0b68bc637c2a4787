package schedule

import "container/heap"

// Sort orders entries by instant within a window of that many entries; equal instants keep the order of the log.
// An entry that comes more than a window too late leaves at once, out of order (Pace deals with it).
func Sort[T any](in Seq[T], window int) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		s := &sorter[T]{}
		for e := range in {
			s.push(e)
			if s.len() > window && !yield(s.pop()) {
				return
			}
		}
		for s.len() > 0 {
			if !yield(s.pop()) {
				return
			}
		}
	}
}

// sorter holds entries until their turn. Nearly all of a log come in order and wait in a queue; the others wait in a
// heap.
type sorter[T any] struct {
	queue  []sortItem[T] // from first on, in order
	first  int
	others byInstant[T]
	order  uint64
}

func (s *sorter[T]) len() int { return len(s.queue) - s.first + len(s.others) }

func (s *sorter[T]) push(e Entry[T]) {
	item := sortItem[T]{e, s.order}
	s.order++
	if n := len(s.queue); n > s.first && e.AtNS < s.queue[n-1].AtNS {
		heap.Push(&s.others, item)
		return
	}
	if len(s.queue) == cap(s.queue) && s.first > len(s.queue)/2 { // room before is better than more room
		n := copy(s.queue, s.queue[s.first:])
		clear(s.queue[n:])
		s.queue, s.first = s.queue[:n], 0
	}
	s.queue = append(s.queue, item)
}

func (s *sorter[T]) pop() Entry[T] {
	if s.first == len(s.queue) || len(s.others) > 0 && s.others[0].before(&s.queue[s.first]) {
		return heap.Pop(&s.others).(sortItem[T]).Entry
	}
	e := s.queue[s.first].Entry
	s.queue[s.first] = sortItem[T]{}
	s.first++
	return e
}

type sortItem[T any] struct {
	Entry[T]
	order uint64
}

func (i *sortItem[T]) before(j *sortItem[T]) bool {
	return i.AtNS < j.AtNS || i.AtNS == j.AtNS && i.order < j.order
}

type byInstant[T any] []sortItem[T]

func (h byInstant[T]) Len() int           { return len(h) }
func (h byInstant[T]) Less(i, j int) bool { return h[i].before(&h[j]) }
func (h byInstant[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byInstant[T]) Push(x any)        { *h = append(*h, x.(sortItem[T])) }
func (h *byInstant[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = sortItem[T]{}
	*h = old[:len(old)-1]
	return last
}
