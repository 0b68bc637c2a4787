// The closed loops: as fast as the server goes (Max), and simulated users (Users).

package engine

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/record"
)

// Max sends the requests of a schedule over n connections, each as soon as the one before it is answered (closed loop):
// as fast as the server goes. A request is due when its connection is free for it, so response time is service time.
// The schedule, whose instants are not used, ends early after limit, where that is not 0.
func (e *Engine) Max(stop context.Context, requests Schedule, n int, limit time.Duration) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	e.opts.PerClient = 1
	e.state.ClosedLoop = true
	stock := &stock{attempts: supplyOne(e.attempts(requests), attemptsInBatch, quit)}
	stock.attempts.ready(stop)
	begin, most := e.drivers(n)
	var plans []plan
	for i := range begin {
		p := &maxLoop{stock: stock, limitNS: limit.Nanoseconds(), withHost: e.state.Target.TLS}
		for slot := i; slot < n; slot += begin {
			p.free = append(p.free, uint32(slot))
		}
		p.slots = len(p.free)
		plans = append(plans, p)
	}
	return e.run(stop, 0, plans, most, most*n) // the slots keep it to n, also while they change hands
}

// stock is what the plans of one sequence share.
type stock struct {
	mu       sync.Mutex
	attempts *supply[*exchange.Attempt]
	once     sync.Once
}

// take returns the next request; nil if none is left, or none is ready yet.
func (s *stock) take() (one *exchange.Attempt, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.attempts.peek()
	if ok {
		s.attempts.drop()
	}
	return one, s.attempts.over
}

// restNS is how long a connection that could not be opened rests before the next request on it.
const restNS = int64(100e6)

// cooldown is a slot that rests.
type cooldown struct {
	slot    uint32
	untilNS int64
}

// maxLoop keeps slots at work, each with one request at a time.
type maxLoop struct {
	stock    *stock
	limitNS  int64
	withHost bool
	slots    int // free, resting and at work
	free     []uint32
	resting  []cooldown
	over     bool

	heir  *maxLoop // gets the next slots that come free
	gives int      // so many

	mu    sync.Mutex
	wake  func()
	given []uint32 // by another driver
}

func (p *maxLoop) wakeBy(wake func()) {
	p.wake = wake
	p.stock.attempts.wakeBy(wake)
}

// split gives half of the slots away, each when its request is answered. Only where all are at work is that sure to come.
func (p *maxLoop) split() plan {
	if p.over || p.gives > 0 || p.slots < 2 || len(p.free) > 0 || len(p.resting) > 0 {
		return nil
	}
	p.gives = p.slots / 2
	p.heir = &maxLoop{stock: p.stock, limitNS: p.limitNS, withHost: p.withHost, slots: p.gives}
	p.slots -= p.gives
	return p.heir
}

// give takes over a slot from another driver.
func (p *maxLoop) give(slot uint32) {
	p.mu.Lock()
	p.given = append(p.given, slot)
	p.mu.Unlock()
	p.wake()
}

func (p *maxLoop) countLeft(ctx context.Context) uint64 {
	var n uint64
	p.stock.once.Do(func() { n = p.stock.attempts.count(ctx) })
	return n
}

// Next returns a request for a slot that is free.
func (p *maxLoop) Next(now int64) (*exchange.Attempt, int64) {
	if len(p.resting) > 0 && p.resting[0].untilNS <= now {
		p.free = append(p.free, p.resting[0].slot)
		p.resting = p.resting[1:]
	}
	again := exchange.Never
	if len(p.resting) > 0 {
		again = p.resting[0].untilNS
	}
	if len(p.free) == 0 {
		p.mu.Lock()
		p.free, p.given = append(p.free, p.given...), nil
		p.mu.Unlock()
	}
	if len(p.free) == 0 {
		return nil, again
	}
	s := p.next(now)
	if s == nil && !p.over && p.limitNS > 0 {
		again = min(again, p.limitNS)
	}
	if s == nil {
		return nil, again
	}
	last := len(p.free) - 1
	s.Key = exchange.Key{Client: p.free[last]}
	p.free = p.free[:last]
	if p.withHost {
		s.Key.Host = s.Host
	}
	s.DueNS = now
	return s, now
}

// next takes the next request of the sequence; nil if none is left, or none is ready yet.
func (p *maxLoop) next(now int64) *exchange.Attempt {
	p.over = p.over || p.limitNS > 0 && now >= p.limitNS
	if p.over {
		return nil
	}
	s, ended := p.stock.take()
	p.over = s == nil && ended
	return s
}

// Done makes the request's slot free.
func (p *maxLoop) Done(s *exchange.Attempt, kind record.ErrorKind, now int64) (leaves bool) {
	if p.gives > 0 {
		p.gives--
		p.heir.give(s.Key.Client)
		return true
	}
	switch kind {
	case record.ConnectRefused, record.ConnectFailed, record.TLSFailed:
		p.resting = append(p.resting, cooldown{s.Key.Client, now + restNS})
	default:
		p.free = append(p.free, s.Key.Client)
	}
	return false
}

// Ended reports whether the sequence has ended.
func (p *maxLoop) Ended() bool { return p.over }

// Visit is what one client of the log did, from its first request to its last; instants count from the visit's begin, at
// the planned speed.
type Visit []Entry

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
	var shares []*usersLoop
	var plans []plan
	begin, most := e.drivers(min(n, connections/connectionsPerLoop))
	for range begin {
		u := &usersLoop{visits: visits, numbers: numbers, limitNS: limit.Nanoseconds()}
		shares, plans = append(shares, u), append(plans, u)
	}
	arrivals := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range n {
		who := &user{number: numbers.Add(1), restNS: int64(arrivals.Float64() * float64(rampUp))}
		shares[i%len(shares)].schedule(who, 0)
	}
	return e.run(stop, 0, plans, most, connections)
}

// usersLoop is what the users of one driver do next, and when.
type usersLoop struct {
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

func (u *usersLoop) wakeBy(wake func()) { u.visits.coming.wakeBy(wake) }

// split gives half of the users away who rest.
func (u *usersLoop) split() plan {
	half := len(u.turns) / 2
	if half == 0 {
		return nil
	}
	other := &usersLoop{visits: u.visits, numbers: u.numbers, limitNS: u.limitNS}
	other.turns = append(other.turns, u.turns[half:]...)
	clear(u.turns[half:])
	u.turns = u.turns[:half] // the beginning of a heap is one
	heap.Init(&other.turns)
	return other
}

// Next returns the request of the user whose turn it is.
func (u *usersLoop) Next(now int64) (*exchange.Attempt, int64) {
	if news := u.visits.coming.news.Load(); len(u.without) > 0 && news != u.seen {
		again := u.without
		u.without, u.seen = nil, news
		for _, t := range again {
			u.schedule(t.user, t.dueNS)
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
	logged := t.user.visit[t.user.next].Value
	return &exchange.Attempt{
		LoggedRequest: logged, Client: t.user.number, Key: exchange.Key{Client: t.user.number, Host: logged.Host},
		DueNS: t.dueNS, Owner: t.user,
	}, now
}

// Done plans the user's next request: after the log's pause since the last one was due, but not before its answer.
func (u *usersLoop) Done(s *exchange.Attempt, _ record.ErrorKind, now int64) (leaves bool) {
	u.busy--
	who := s.Owner.(*user)
	gap := int64(0)
	if who.next+1 < len(who.visit) {
		gap = who.visit[who.next+1].AtNS - who.visit[who.next].AtNS
	}
	due := max(now, s.DueNS+gap)
	who.next++
	if who.next < len(who.visit) {
		u.schedule(who, due)
		return false
	}
	u.schedule(&user{number: u.numbers.Add(1)}, due)
	return true
}

// Ended reports whether no user has anything left to do.
func (u *usersLoop) Ended() bool { return len(u.turns) == 0 && len(u.without) == 0 && u.busy == 0 }

// schedule puts a user's next request on the list; a user without a visit gets one, or is done.
func (u *usersLoop) schedule(who *user, dueNS int64) {
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

// countLeft counts what the users at work had still before them. What users had whose visit was not read yet is unknown.
func (u *usersLoop) countLeft(ctx context.Context) uint64 {
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

func (h turnHeap) Len() int { return len(h) }

func (h turnHeap) Less(i, j int) bool { return h[i].dueNS < h[j].dueNS }

func (h turnHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *turnHeap) Push(x any) { *h = append(*h, x.(turn)) }

func (h *turnHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = turn{}
	*h = old[:len(old)-1]
	return last
}

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
