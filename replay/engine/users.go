package engine

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"plimsoll/replay/engine/exchange"
)

// Step is one request of a visit: when it comes, counted from the visit's begin at the planned speed, and what it is.
type Step struct {
	AtNS int64
	Hit  exchange.Hit
}

// Visit is what one client of the log did, from its first request to its last.
type Visit []Step

// Users keeps n simulated users at work, each repeating one visit of the log after the other, with its pauses (closed
// loop): a request is due when its pause is over and the previous answer has come. It ends when the sequence of visits
// has ended and each user has had at least one (where there are too few, visits are used again), or at the limit, where
// that is not 0: visits are then repeated until it. Users arrive one after another over rampUp.
func (e *Engine) Users(
	stop context.Context, visits iter.Seq[Visit], n int, rampUp, limit time.Duration, seed uint64,
) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	e.opts.MaxConnections = max(e.opts.MaxConnections, n)
	u := &users{e: e, visits: newVisits(visits, n, limit > 0, quit), limitNS: limit.Nanoseconds()}
	running, end := e.begin(stop, 0)
	defer end()
	u.sleep = newSleeper(e.session.Clock)
	defer u.sleep.close()
	defer context.AfterFunc(running, u.sleep.wake)()

	arrivals := rand.New(rand.NewPCG(seed, uint64(n)))
	for range n {
		u.plan(&user{number: u.number(), restNS: int64(arrivals.Float64() * float64(rampUp))}, 0)
	}
	u.run(running)
	return e.outcome(running, u.unsent())
}

// users is the closed loop of one run: who does what next, and when.
type users struct {
	e       *Engine
	visits  *visits
	sleep   sleeper
	limitNS int64

	mu      sync.Mutex
	turns   turnHeap
	waiting int // users whose answer is not there yet
	numbers uint32
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

// run sends what is due until no user has anything left to do.
func (u *users) run(running context.Context) {
	for running.Err() == nil {
		due, wait, idle := u.take()
		switch {
		case idle:
			return
		case due == nil:
			u.sleep.until(wait)
		default:
			u.send(due)
		}
	}
}

// forEver is later than any run ends.
const forEver = int64(1) << 62

// take returns the turn that is due; else until when to sleep; or that there is nothing to come.
func (u *users) take() (due *turn, untilNS int64, idle bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.turns) == 0 {
		return nil, forEver, u.waiting == 0
	}
	if u.turns[0].dueNS > u.e.session.Clock.Now() {
		return nil, u.turns[0].dueNS, false
	}
	first := heap.Pop(&u.turns).(turn)
	u.waiting++
	return &first, 0, false
}

func (u *users) send(due *turn) {
	who := due.user
	s := &exchange.Shot{Hit: who.visit[who.next].Hit, DueNS: due.dueNS}
	s.Client = who.number
	s.After = func(s *exchange.Shot, doneNS int64) { u.answered(who, s, doneNS) }
	u.e.pool.Submit(s, u.e.key(s, who.number))
}

// answered plans the user's next request: after the log's pause since the last one was due, but not before its answer.
func (u *users) answered(who *user, s *exchange.Shot, doneNS int64) {
	gap := int64(0)
	if who.next+1 < len(who.visit) {
		gap = who.visit[who.next+1].AtNS - who.visit[who.next].AtNS
	}
	due := max(doneNS, s.DueNS+gap)
	who.next++
	if who.next == len(who.visit) {
		u.e.pool.Leave(u.e.key(s, who.number))
		who = &user{number: u.number()}
	}
	u.plan(who, due)
	u.mu.Lock()
	u.waiting--
	u.mu.Unlock()
	u.sleep.wake()
}

// plan puts a user's next request on the list; a user without a visit gets one, or is done.
func (u *users) plan(who *user, dueNS int64) {
	if who.visit == nil {
		if who.visit = u.visits.next(); who.visit == nil {
			return
		}
		dueNS += who.restNS
	}
	if u.limitNS > 0 && dueNS >= u.limitNS {
		return
	}
	u.mu.Lock()
	heap.Push(&u.turns, turn{dueNS, who})
	u.mu.Unlock()
}

func (u *users) number() uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.numbers++
	return u.numbers
}

// unsent counts what the users at work had still before them.
func (u *users) unsent() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
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
