package engine

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// Step is one request of a visit: when it comes, counted from the visit's begin at the planned speed, and what it is.
type Step struct {
	AtNS int64
	Hit  *exchange.Hit
}

// Visit is what one client of the log did, from its first request to its last.
type Visit []Step

// Users keeps n simulated users at work, each repeating one visit of the log after the other, with its pauses (closed
// loop): a request is due when its pause is over and the previous answer has come. It ends when the sequence of visits
// has ended and each user has had at least one (where there are too few, visits are used again), or at the limit, where
// that is not 0: visits are then repeated until it. Users arrive one after another over rampUp.
func (e *Engine) Users(
	stop context.Context, seq iter.Seq[Visit], n int, rampUp, limit time.Duration, seed uint64,
) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	connections := max(e.opts.MaxConnections, n)
	visits := newVisits(stop, supplyOne(seq, visitsInBatch, quit), n, limit > 0)
	numbers := &atomic.Uint32{}
	var shares []*usersPlan
	var plans []plan
	begin, most := e.drivers(min(n, connections/connectionsPerLoop))
	for range begin {
		u := &usersPlan{visits: visits, numbers: numbers, limitNS: limit.Nanoseconds()}
		shares, plans = append(shares, u), append(plans, u)
	}
	arrivals := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range n {
		who := &user{number: numbers.Add(1), restNS: int64(arrivals.Float64() * float64(rampUp))}
		shares[i%len(shares)].plan(who, 0)
	}
	return e.run(stop, 0, plans, most, connections)
}

// usersPlan is what the users of one driver do next, and when.
type usersPlan struct {
	visits  *visits
	numbers *atomic.Uint32
	limitNS int64
	turns   turnHeap
	without []turn // users without a visit yet
	seen    int64  // the news of visits that were acted on
	busy    int    // users whose answer is not there yet
}

// user is one simulated user on one visit.
type user struct {
	number uint32
	visit  Visit
	next   int
	restNS int64 // until the first request of the visit
}

// turn is when a user does what comes next.
type turn struct {
	dueNS int64
	user  *user
}

func (u *usersPlan) wakeBy(wake func()) { u.visits.coming.wakeBy(wake) }

// split gives half of the users away who rest.
func (u *usersPlan) split() plan {
	half := len(u.turns) / 2
	if half == 0 {
		return nil
	}
	other := &usersPlan{visits: u.visits, numbers: u.numbers, limitNS: u.limitNS}
	other.turns = append(other.turns, u.turns[half:]...)
	clear(u.turns[half:])
	u.turns = u.turns[:half] // the beginning of a heap is one
	heap.Init(&other.turns)
	return other
}

// Next returns the request of the user whose turn it is.
func (u *usersPlan) Next(now int64) (*exchange.Shot, int64) {
	if news := u.visits.coming.news.Load(); len(u.without) > 0 && news != u.seen {
		again := u.without
		u.without, u.seen = nil, news
		for _, t := range again {
			u.plan(t.user, t.dueNS)
		}
	}
	if u.limitNS > 0 && now >= u.limitNS {
		u.without = nil
	}
	switch {
	case len(u.turns) == 0 && len(u.without) > 0 && u.limitNS > 0:
		return nil, u.limitNS
	case len(u.turns) == 0:
		return nil, exchange.Never
	case u.turns[0].dueNS > now:
		return nil, u.turns[0].dueNS
	}
	t := heap.Pop(&u.turns).(turn)
	u.busy++
	s := (&exchange.Shot{Owner: t.user}).Of(t.user.visit[t.user.next].Hit, t.dueNS)
	s.Client = t.user.number
	s.Key = exchange.Key{Client: s.Client, Host: s.Host}
	return s, now
}

// Done plans the user's next request: after the log's pause since the last one was due, but not before its answer.
func (u *usersPlan) Done(s *exchange.Shot, _ record.ErrorKind, now int64) (leaves bool) {
	u.busy--
	who := s.Owner.(*user)
	gap := int64(0)
	if who.next+1 < len(who.visit) {
		gap = who.visit[who.next+1].AtNS - who.visit[who.next].AtNS
	}
	due := max(now, s.DueNS+gap)
	who.next++
	if who.next < len(who.visit) {
		u.plan(who, due)
		return false
	}
	u.plan(&user{number: u.numbers.Add(1)}, due)
	return true
}

// Ended reports whether no user has anything left to do.
func (u *usersPlan) Ended() bool { return len(u.turns) == 0 && len(u.without) == 0 && u.busy == 0 }

// plan puts a user's next request on the list; a user without a visit gets one, or is done.
func (u *usersPlan) plan(who *user, dueNS int64) {
	if u.limitNS > 0 && dueNS >= u.limitNS {
		return
	}
	if who.visit == nil {
		visit, yet := u.visits.next()
		if yet {
			u.without = append(u.without, turn{dueNS, who})
			return
		}
		if visit == nil {
			return
		}
		who.visit = visit
		dueNS += who.restNS
	}
	if u.limitNS == 0 || dueNS < u.limitNS {
		heap.Push(&u.turns, turn{dueNS, who})
	}
}

// left counts what the users at work had still before them. What users had whose visit was not read yet is unknown.
func (u *usersPlan) left(ctx context.Context) uint64 {
	if len(u.without) > 0 {
		<-ctx.Done()
	}
	var n uint64
	for _, t := range u.turns {
		n += uint64(len(t.user.visit) - t.user.next)
	}
	return n
}

// turnHeap orders users by when they are due.
type turnHeap []turn

func (h turnHeap) Len() int           { return len(h) }
func (h turnHeap) Less(i, j int) bool { return h[i].dueNS < h[j].dueNS }
func (h turnHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *turnHeap) Push(x any)        { *h = append(*h, x.(turn)) }
func (h *turnHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = turn{}
	*h = old[:len(old)-1]
	return last
}
