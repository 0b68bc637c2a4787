package schedule

import "container/heap"

// Sort orders entries by instant within a window of that many entries; equal instants keep the order of the log.
// An entry that comes more than a window too late leaves at once, out of order (Pace deals with it).
func Sort[T any](in Seq[T], window int) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		h := &byInstant[T]{}
		var order uint64
		for e := range in {
			heap.Push(h, sortItem[T]{e, order})
			order++
			if h.Len() > window {
				if !yield(heap.Pop(h).(sortItem[T]).Entry) {
					return
				}
			}
		}
		for h.Len() > 0 {
			if !yield(heap.Pop(h).(sortItem[T]).Entry) {
				return
			}
		}
	}
}

type sortItem[T any] struct {
	Entry[T]
	order uint64
}

type byInstant[T any] []sortItem[T]

func (h byInstant[T]) Len() int { return len(h) }
func (h byInstant[T]) Less(i, j int) bool {
	if h[i].AtNS != h[j].AtNS {
		return h[i].AtNS < h[j].AtNS
	}
	return h[i].order < h[j].order
}
func (h byInstant[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byInstant[T]) Push(x any)   { *h = append(*h, x.(sortItem[T])) }
func (h *byInstant[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = sortItem[T]{}
	*h = old[:len(old)-1]
	return last
}
