// Package schedule turns the instants in a log into the instants at which requests are due.
//
// It is pure: no clock, no input or output. Each stage takes a sequence and returns a sequence, and holds no more
// than a bounded number of entries, so that a log of any size is scheduled in constant memory. The stages in order:
//
//	Sort     logged order → order of logged instants, within a window
//	Spread   requests logged in the same second → spread over that second
//	Starts   instants of completion → instants of start, where the log knows how long requests took
//	Sort     again, since long requests started earlier than short ones that finished with them
//	Between  what lies between two instants of the log
//	Pace     instants of start → due instants, nanoseconds since the start of the run
package schedule

import (
	"container/heap"
	"iter"
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// Entry is one request on its way through the stages.
type Entry[T any] struct {
	AtNS       int64 // the instant the stage before gave it: Unix nanoseconds, after Pace nanoseconds since the run's start
	DurationNS int64 // how long the log says it took; −1 unknown
	Value      T
}

// Seq is a sequence of entries.
type Seq[T any] = iter.Seq[Entry[T]]

// Notes counts what a schedule had to do to the log; it is complete when the sequence has ended. Of
// one that goes on, only FirstNS may be read.
type Notes struct {
	FirstNS atomic.Int64 // the logged instant that is due at 0; 0 where a rate takes the log's place

	Late   uint64 // entries further back in time than the sorting window reaches: due at once
	Steps  uint64 // steps of the log's clock back in time, followed from there on
	Spread uint64 // entries moved within their second
	Pauses uint64 // pauses of the log that were shortened, each time they were come to
	CutNS  int64  // what was cut off them in all, in the log's time
}

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

func (h byInstant[T]) Len() int { return len(h) }

func (h byInstant[T]) Less(i, j int) bool { return h[i].before(&h[j]) }

func (h byInstant[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *byInstant[T]) Push(x any) { *h = append(*h, x.(sortItem[T])) }

func (h *byInstant[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = sortItem[T]{}
	*h = old[:len(old)-1]
	return last
}

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

// stepAfter is how many entries in a row must lie behind the schedule before the log's clock counts as set back. Fewer
// are strays, which are due at once; a clock set back (the end of summer time in a log without offsets) is followed.
const stepAfter = 32

// Pacing says when entries are due.
type Pacing struct {
	Speed   float64 // times the recorded pace; > 0
	Rate    float64 // entries per second at even distances; 0: at the recorded pace
	PauseNS int64   // longest pause of the log that is kept, in the log's time; 0: any
	LimitNS int64   // nothing is due at or after this instant of the run; 0: no limit
	Loops   int     // how many times the log is replayed; at least 1, or 0 for as long as LimitNS allows
}

// Pace gives each entry its due instant: (logged start − first logged start) / speed, or the next multiple of 1/rate.
// Due instants never decrease. A longer pause than PauseNS is shortened to it. The source is asked for a new sequence
// for each loop; the pause between two loops is the log's mean distance between requests.
func Pace[T any](source func() Seq[T], pacing Pacing, notes *Notes) Seq[T] {
	return func(yield func(Entry[T]) bool) {
		p := pacer{pacing: pacing, notes: notes}
		for loop := 0; pacing.Loops == 0 || loop < pacing.Loops; loop++ {
			before := p.count
			for e := range source() {
				e.AtNS = p.due(e.AtNS)
				if pacing.LimitNS > 0 && e.AtNS >= pacing.LimitNS {
					return
				}
				if !yield(e) {
					return
				}
			}
			if p.count == before {
				return // an empty log would loop forever
			}
			p.nextLoop(p.count - before)
		}
	}
}

// pacer is the arithmetic of one schedule.
type pacer struct {
	pacing  Pacing
	notes   *Notes
	count   uint64
	started bool
	baseNS  int64 // the logged instant that is due at offset
	lastNS  int64 // the logged instant that is due at lastDue, pauses not cut
	offset  int64
	lastDue int64
	behind  int // entries in a row behind lastDue
}

// nextLoop lets the next loop begin one mean distance after the last entry.
func (p *pacer) nextLoop(entries uint64) {
	gap := int64(0)
	if entries > 1 {
		gap = (p.lastDue - p.offset) / int64(entries-1)
	}
	if gap <= 0 {
		gap = int64(1e9 / p.pacing.Speed)
	}
	p.started = false
	p.offset = after(p.lastDue, float64(gap))
}

func (p *pacer) due(atNS int64) int64 {
	p.count++
	if p.pacing.Rate > 0 {
		p.lastDue = after(0, float64(p.count-1)*1e9/p.pacing.Rate)
		return p.lastDue
	}
	if !p.started {
		p.started = true
		p.baseNS, p.lastNS = atNS, atNS
		if p.count == 1 {
			p.notes.FirstNS.Store(atNS)
		}
	}
	if cut := atNS - p.lastNS - p.pacing.PauseNS; p.pacing.PauseNS > 0 && cut > 0 {
		p.baseNS += cut
		p.notes.Pauses++
		p.notes.CutNS += cut
	}
	due := after(p.offset, float64(atNS-p.baseNS)/p.pacing.Speed)
	if due >= p.lastDue {
		p.behind = 0
		p.lastNS, p.lastDue = atNS, due
		return due
	}
	p.behind++
	p.notes.Late++
	if p.behind >= stepAfter {
		p.notes.Steps++
		p.behind = 0
		p.baseNS, p.lastNS, p.offset = atNS, atNS, p.lastDue
	}
	return p.lastDue
}

// farNS is an instant that no run comes to, 146 years after its start: what would be due later is due then.
const farNS = 1 << 62

// after returns the instant so many nanoseconds after another.
func after(atNS int64, ns float64) int64 {
	return atNS + int64(math.Round(max(-farNS, min(ns, farNS-float64(atNS)))))
}

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
