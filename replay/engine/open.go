// The open loop: requests at their due instants, read and prepared ahead of the drivers.

package engine

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// Open sends each request when it is due (open loop). The schedule gives them in the order of their due instants. When
// stop is cancelled, nothing more is sent, what is in flight is finished, and the rest of the schedule is counted as
// unsent, as far as that can be done in a moment.
func (e *Engine) Open(stop context.Context, due Schedule) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	begin, most := e.drivers(e.opts.MaxConnections / connectionsPerLoop)
	active := &atomic.Int64{}
	active.Store(int64(begin))
	byClient := func(s *exchange.Attempt, drivers int) int { return int(s.Client % uint32(drivers)) }
	var all []*openLoop
	var plans []plan
	for i, s := range supplies(e.attempts(due), attemptsInBatch, most, active, byClient, quit) {
		p := &openLoop{attempts: s}
		all = append(all, p)
		if i < begin {
			s.ready(stop) // the log is open and read ahead before the clock starts
			plans = append(plans, p)
		}
	}
	split := func() plan { return all[active.Add(1)-1] }
	for _, p := range all {
		p.another = split
	}
	return e.run(stop, readyBefore, plans, most, e.opts.MaxConnections)
}

// openLoop is the schedule of the log, as far as it is one driver's: that of every n-th client.
type openLoop struct {
	attempts *supply[*exchange.Attempt]
	another  func() plan
}

// split redistributes what is not yet read: clients that go to the other driver get connections of its own.
func (p *openLoop) split() plan { return p.another() }

func (p *openLoop) wakeBy(wake func()) { p.attempts.wakeBy(wake) }

func (p *openLoop) countLeft(ctx context.Context) uint64 { return p.attempts.count(ctx) }

// Next returns the request that is due.
func (p *openLoop) Next(now int64) (*exchange.Attempt, int64) {
	s, ok := p.attempts.peek()
	switch {
	case !ok:
		return nil, exchange.Never
	case s.DueNS > now:
		return nil, s.DueNS
	}
	p.attempts.drop()
	return s, now
}

// Done does nothing: in the open loop nobody waits for an answer.
func (p *openLoop) Done(*exchange.Attempt, record.ErrorKind, int64) bool { return false }

// Ended reports whether the log has ended.
func (p *openLoop) Ended() bool { return p.attempts.over && len(p.attempts.batch) == 0 }

// Requests are read ahead of the drivers, in batches, so that reading the log never makes them late.
const (
	batchesAhead    = 64
	attemptsInBatch = 64
	visitsInBatch   = 4
)

// supply hands the elements of a sequence to one driver, which never waits for it.
type supply[T any] struct {
	batches chan []T
	batch   []T
	over    bool
	starved atomic.Bool  // somebody found nothing, and is to be woken
	news    atomic.Int64 // how often there was something for the starved

	mu    sync.Mutex
	wakes []func()
}

// supplyOne reads a sequence ahead for one driver, or several that take turns.
func supplyOne[T any](seq iter.Seq[T], size int, quit <-chan struct{}) *supply[T] {
	one := &atomic.Int64{}
	one.Store(1)
	return supplies(seq, size, 1, one, nil, quit)[0]
}

// supplies reads a sequence ahead in a goroutine of its own, until quit is closed, and shares it out to the first active
// ones of n drivers: each element to the one that of names. Batches go to all of them in step, so that none waits for
// what is stuck behind another's.
func supplies[T any](
	seq iter.Seq[T], size, n int, active *atomic.Int64, of func(one T, drivers int) int, quit <-chan struct{},
) []*supply[T] {
	all := make([]*supply[T], n)
	for i := range all {
		all[i] = &supply[T]{batches: make(chan []T, batchesAhead)}
	}
	go func() {
		n := int(active.Load())
		count, batches := 0, make([][]T, n)
		hand := func() bool {
			for i, batch := range batches {
				select {
				case all[i].batches <- batch:
				case <-quit:
					return false
				}
				all[i].wakeStarved()
			}
			n = int(active.Load())
			count, batches = 0, make([][]T, n)
			return true
		}
		for one := range seq {
			i := 0
			if n > 1 {
				i = of(one, n)
			}
			if batches[i] == nil {
				batches[i] = make([]T, 0, size)
			}
			batches[i] = append(batches[i], one)
			if count++; count == size*n && !hand() {
				break
			}
		}
		hand()
		for _, s := range all {
			close(s.batches)
			s.wakeStarved()
		}
	}()
	return all
}

// wakeBy sets how to wake a driver when there is something again.
func (s *supply[T]) wakeBy(wake func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes = append(s.wakes, wake)
}

// wakeStarved wakes those who found nothing.
func (s *supply[T]) wakeStarved() {
	if !s.starved.Swap(false) {
		return
	}
	s.news.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wake := range s.wakes {
		wake()
	}
}

// peek returns the next element, if it is there.
func (s *supply[T]) peek() (one T, ok bool) {
	for len(s.batch) == 0 && !s.over {
		if !s.receive() {
			s.starved.Store(true)
			if !s.receive() { // look again: it may have come just before
				return one, false
			}
		}
	}
	if len(s.batch) == 0 {
		return one, false
	}
	return s.batch[0], true
}

func (s *supply[T]) receive() bool {
	select {
	case batch, more := <-s.batches:
		s.batch, s.over = batch, !more
		return true
	default:
		return false
	}
}

// drop takes the element that peek returned.
func (s *supply[T]) drop() {
	var none T
	s.batch[0] = none
	s.batch = s.batch[1:]
}

// ready waits until the first elements are there, no longer than a moment after the end of stop.
func (s *supply[T]) ready(stop context.Context) {
	late := make(chan struct{})
	defer context.AfterFunc(stop, func() { time.AfterFunc(countsFor, func() { close(late) }) })()
	select {
	case batch, more := <-s.batches:
		s.batch, s.over = batch, !more
	case <-late:
	}
}

// count reads what is left, to its end or that of ctx.
func (s *supply[T]) count(ctx context.Context) uint64 {
	n := uint64(len(s.batch))
	for !s.over {
		select {
		case batch, more := <-s.batches:
			n += uint64(len(batch))
			s.over = !more
		case <-ctx.Done():
			return n
		}
	}
	return n
}

// attempts makes requests ready to be sent, as far as that can be done before they are due.
func (e *Engine) attempts(due Schedule) iter.Seq[*exchange.Attempt] {
	return func(yield func(*exchange.Attempt) bool) {
		var empty []exchange.Attempt
		var room []byte
		for one := range due {
			if len(empty) == 0 {
				empty = make([]exchange.Attempt, attemptsInBatch)
			}
			s := &empty[0]
			empty = empty[1:]
			s.LoggedRequest, s.Client, s.DueNS = one.Value, one.Value.Client, one.AtNS
			s.Key = exchange.Key{Client: s.Client, Host: s.Host}
			if !e.state.Target.TLS && s.IfModifiedSince.IsZero() && s.Body == "" &&
				e.state.Sessions[s.Client] == nil {
				if cap(room)-len(room) < roomLeast {
					room = make([]byte, 0, roomBytes)
				}
				begin := len(room)
				room = s.AppendHTTP1(room, e.state.Target.Host, e.state.Headers)
				s.Head = room[begin:len(room):len(room)]
			}
			if !yield(s) {
				return
			}
		}
	}
}

// Requests are written into rooms that they share.
const (
	roomBytes = 32 << 10
	roomLeast = 2 << 10
)
