package schedule

// Starts turns instants of completion into instants of start, for logs that stamp a request when it is finished (nginx)
// and know how long it took. Entries without a duration stay where they are. None is moved before earliestNS: a request
// that had taken hours when the log began would keep all others waiting for hours.
func Starts[T any](in Seq[T], earliestNS int64) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		for e := range in {
			if e.DurationNS > 0 {
				e.AtNS -= min(e.DurationNS, max(0, e.AtNS-earliestNS))
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Between keeps entries with from ≤ instant < to, both in Unix nanoseconds.
func Between[T any](in Seq[T], fromNS, toNS int64) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		for e := range in {
			if e.AtNS >= fromNS && e.AtNS < toNS && !yield(e) {
				return
			}
		}
	}
}

// Limit ends a sequence after n entries.
func Limit[T any](in Seq[T], n uint64) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		if n == 0 {
			return
		}
		left := n
		for e := range in {
			left--
			if !yield(e) || left == 0 {
				return
			}
		}
	}
}
