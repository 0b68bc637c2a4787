package traffic

// Clients: numbered, divided among instances, found by what they do.

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/big"
	"sort"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/route"
)

// numberClient numbers a client by a hash of its address and user agent: the same in every run and on every machine.
func numberClient(host, agent []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(host)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(agent)
	return h.Sum32()
}

// Share is the part of the clients that one of several instances replays, each of which reads the whole log. A client
// is in exactly one share, with all its requests, so that its connections stay together and the union of the shares is
// the log. The zero Share is all clients.
type Share struct {
	bounds []uint64 // where each instance's part begins and the last one ends, in units of 2⁻³²
	index  int
}

const allClients = 1 << 32

// NewShare returns the part from bounds[index] to bounds[index+1]. The bounds are those of all instances: they ascend
// from 0 to 1.
func NewShare(bounds []*big.Rat, index int) (Share, error) {
	if len(bounds) < 2 || index < 0 || index > len(bounds)-2 {
		return Share{}, fmt.Errorf("there is no share %d between %d bounds", index, len(bounds))
	}
	if bounds[0].Sign() != 0 || bounds[len(bounds)-1].Cmp(big.NewRat(1, 1)) != 0 {
		return Share{}, fmt.Errorf("the shares go from %v to %v, and not from 0 to 1: no instance would send some of the requests",
			bounds[0], bounds[len(bounds)-1])
	}
	s := Share{index: index}
	for i, bound := range bounds {
		if i > 0 && bound.Cmp(bounds[i-1]) <= 0 {
			return Share{}, fmt.Errorf("the bounds of the shares are not in ascending order: %v comes after %v",
				bound, bounds[i-1])
		}
		scaled := new(big.Int).Mul(bound.Num(), big.NewInt(allClients))
		s.bounds = append(s.bounds, scaled.Div(scaled, bound.Denom()).Uint64())
	}
	return s, nil
}

// Instances returns how many shares there are.
func (s Share) Instances() int { return max(1, len(s.bounds)-1) }

// Index returns the number of this share, from 0.
func (s Share) Index() int { return s.index }

// Of returns the index of the instance that sends the requests of a client.
func (s Share) Of(client uint32) int {
	if s.bounds == nil {
		return 0
	}
	place := uint64(mixBits(client))
	return sort.Search(len(s.bounds), func(i int) bool { return s.bounds[i] > place }) - 1
}

// isMine reports whether this instance sends the requests of a client.
func (s Share) isMine(client uint32) bool { return s.bounds == nil || s.Of(client) == s.index }

// mixBits spreads the numbers of clients evenly, one to one: the finalizer of MurmurHash3 (Appleby, public domain). The
// hash that numbers clients does not do that for its high bits, which here decide.
func mixBits(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// Marked returns the clients of which mark says so of some request, whether that is sent or not, and that send at least
// one request under this plan; in the order of these.
func (l *Logs) Marked(
	ctx context.Context, plan Plan, mark func(r *accesslog.Request, client uint32, target []byte) bool,
) ([]uint32, error) {
	marked := map[uint32]bool{}
	var target []byte
	err := l.source.Each(ctx, l.Format, nil, func(r *accesslog.Request) bool {
		target = accesslog.Unescape(target[:0], r.Target, l.Format.TargetEscape())
		if client := plan.Spread.of(r); !marked[client] && mark(r, client, target) {
			marked[client] = true
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var clients []uint32
	plan.Loops = 1
	t := New(plan, l, noCounter{}, route.New(nil))
	requests := t.Unpaced()
	switch {
	case plan.Users:
		requests = t.applyShare(t.ordered())
	case plan.Speed > 0:
		requests = t.Paced()
	}
	for one := range requests {
		if client := one.Value.Client; marked[client] {
			clients = append(clients, client)
			delete(marked, client)
		}
		if len(marked) == 0 || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return clients, t.Err()
}

// Senders returns the clients of which the logs have a body that this plan sends, and that send at least one request.
func (l *Logs) Senders(ctx context.Context, plan Plan) ([]uint32, error) {
	if !l.Format.HasBodies() {
		return nil, nil
	}
	return l.Marked(ctx, plan, func(r *accesslog.Request, _ uint32, _ []byte) bool {
		method := methodText(r.Method)
		return len(r.Body) > 0 && carries(method) && plan.Methods[method]
	})
}

// noCounter counts nothing.
type noCounter struct{}

func (noCounter) Skip(string) {}

func (noCounter) SkipN(string, uint64) {}
