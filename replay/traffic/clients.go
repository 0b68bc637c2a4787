package traffic

import (
	"context"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/route"
)

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
	t := New(plan, l, nobody{}, route.New(nil))
	t.once(func(hit *exchange.LoggedRequest) bool {
		if marked[hit.Client] {
			clients = append(clients, hit.Client)
			delete(marked, hit.Client)
		}
		return len(marked) > 0 && ctx.Err() == nil
	})
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
		method := methodOf(r.Method)
		return len(r.Body) > 0 && carries(method) && plan.Methods[method]
	})
}

// once calls use with what one loop through the log sends, until it returns false.
func (t *Traffic) once(use func(hit *exchange.LoggedRequest) bool) {
	t.plan.Loops = 1
	if t.plan.Users {
		for e := range t.shared(t.ordered()) {
			if !use(e.Value) {
				return
			}
		}
		return
	}
	shots := t.Unpaced
	if t.plan.Speed > 0 {
		shots = t.Paced
	}
	for shot := range shots() {
		if !use(shot.LoggedRequest) {
			return
		}
	}
}

// nobody counts nothing.
type nobody struct{}

func (nobody) Skip(string)          {}
func (nobody) SkipN(string, uint64) {}
