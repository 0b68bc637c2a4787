package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/replay/engine"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Whatever carries a request out, its record says the same. The tables of this package are held against each driver in
// each loop: go test ./engine -run 'TestAnswers/.*/plain/max'.

// driver is one way in which requests are carried out.
type driver struct {
	name   string
	tls    bool
	proto  wire.Protocol
	slower time.Duration // how many times as much time a test takes; 0: as much as it says
}

func (d driver) http2() bool { return d.proto == wire.HTTP2 }

func (d driver) alpn() string {
	if d.http2() {
		return "h2"
	}
	return "http/1.1"
}

var (
	plain      = driver{name: "plain"}
	goroutines = driver{name: "goroutines"}
	overTLS    = driver{name: "tls", tls: true}
	overHTTP2  = driver{name: "http2", tls: true, proto: wire.HTTP2}

	http1     = []driver{plain, goroutines, overTLS}
	http1and2 = []driver{plain, goroutines, overTLS, overHTTP2}
	http2only = []driver{overHTTP2}
)

// loop is one way in which requests become due. Here each client has one connection at a time.
type loop struct {
	name string
	run  func(e *engine.Engine, r *ride) engine.Outcome
}

var loops = []loop{
	{"open", func(e *engine.Engine, r *ride) engine.Outcome { return e.Open(r.stopped, r.due()) }},
	{"max", func(e *engine.Engine, r *ride) engine.Outcome { return e.Max(r.stopped, r.due(), len(r.asks), 0) }},
	{"users", func(e *engine.Engine, r *ride) engine.Outcome {
		return e.Users(r.stopped, r.visits(), len(r.asks), 0, 0, 1)
	}},
}

// paced are the loops in which time may pass between two requests.
var paced = []loop{loops[0], loops[2]}

// onEach runs a test with each driver in each loop.
func onEach(t *testing.T, says string, drivers []driver, test func(t *testing.T, r *ride)) {
	t.Helper()
	onEachOf(t, says, drivers, loops, test)
}

// onEachOf runs a test with each driver in each of some loops. Where the machine was too slow for it, it is run again with
// more time.
func onEachOf(t *testing.T, says string, drivers []driver, loops []loop, test func(t *testing.T, r *ride)) {
	t.Helper()
	for _, d := range drivers {
		for _, l := range loops {
			t.Run(strings.Join([]string{says, d.name, l.name}, "/"), func(t *testing.T) {
				t.Parallel()
				d := d
				for d.slower = 1; ; d.slower *= 4 {
					r := newRide(t, d, l)
					if test(t, r); !r.again {
						return
					}
				}
			})
		}
	}
}

// A ride sends a few requests and keeps what is recorded of them. It is an exchange.Recorder.
type ride struct {
	driver   driver
	loop     loop
	asks     [][]wire.Request // by client
	gap      time.Duration    // between the instants at which requests are due; max has none. 0: as short as it can be
	opts     engine.Options
	patience time.Duration // after which the run is aborted, and has failed

	stopped, aborted context.Context
	stop, abort      context.CancelFunc

	mu      sync.Mutex
	records []record.Record
	skipped map[string]int
	retried int
	unsent  uint64
	hung    string
	again   bool // the machine was too slow
}

func newRide(t *testing.T, d driver, l loop) *ride {
	r := &ride{
		driver: d, loop: l, patience: 10 * time.Second, skipped: map[string]int{},
		opts: engine.Options{Timeout: 5 * time.Second, PerClient: 1},
	}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.aborted, r.abort = context.WithCancel(context.Background())
	t.Cleanup(func() {
		r.stop()
		r.abort()
	})
	return r
}

// Start, Add, Skip and Retried make a ride an exchange.Recorder.
func (r *ride) Start(time.Time) error { return nil }

func (r *ride) Add(one *record.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, *one)
}

func (r *ride) Skip(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped[reason]++
}

func (r *ride) Retried() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retried++
}

// gets are so many requests for /1, /2, ….
func gets(n int) []wire.Request { return asks("GET", n) }

func asks(method string, n int) []wire.Request {
	var all []wire.Request
	for i := range n {
		all = append(all, wire.Request{Method: method, Target: fmt.Sprintf("/%d", i+1)})
	}
	return all
}

// perClient tells the lines of one client from those of the next.
const perClient = 1000

func (r *ride) request(client, i int) *exchange.LoggedRequest {
	logged := &exchange.LoggedRequest{
		Request: r.asks[client][i], Client: uint32(client), LoggedBytes: -1, Line: uint64(client*perClient + i + 1),
	}
	logged.Proto = max(logged.Proto, r.driver.proto)
	return logged
}

func (r *ride) dueNS(i int) int64 { return int64(i) * r.times(cmp.Or(r.gap, r.apart())).Nanoseconds() }

// times returns a time that is longer on a machine that was too slow before.
func (r *ride) times(d time.Duration) time.Duration { return d * max(1, r.driver.slower) }

// apart is how long a request may take until the next is due, where that would go out at once, as a stream.
func (r *ride) apart() time.Duration {
	if r.driver.http2() && r.loop.name == "open" {
		return 150 * time.Millisecond
	}
	return 0
}

// later does something while a run is under way.
func (r *ride) later(d time.Duration, do func()) { time.AfterFunc(r.times(d), do) }

// due are the first requests of all clients, then the second ones, and so on.
func (r *ride) due() engine.Schedule {
	return func(yield func(engine.Entry) bool) {
		for i, left := 0, true; left; i++ {
			left = false
			for client := range r.asks {
				if i >= len(r.asks[client]) {
					continue
				}
				left = true
				if !yield(engine.Entry{AtNS: r.dueNS(i), Value: r.request(client, i)}) {
					return
				}
			}
		}
	}
}

func (r *ride) visits() iter.Seq[engine.Visit] {
	return func(yield func(engine.Visit) bool) {
		for client := range r.asks {
			var v engine.Visit
			for i := range r.asks[client] {
				v = append(v, engine.Entry{AtNS: r.dueNS(i), Value: r.request(client, i)})
			}
			if !yield(v) {
				return
			}
		}
	}
}

// run sends the requests of some clients to a base URL. A run that does not end is aborted.
func (r *ride) run(t *testing.T, base string, asks ...[]wire.Request) {
	t.Helper()
	r.opts.Goroutines = r.driver.name == goroutines.name
	r.opts.Timeout, r.patience = r.times(r.opts.Timeout), r.times(r.patience)
	to, err := target.New(context.Background(), base, "", true)
	if err != nil {
		t.Fatal(err)
	}
	none, _ := wire.ParseHeaders(nil)
	r.asks = asks
	e := engine.New(to, none, r.opts, r, r.aborted)
	ended := make(chan engine.Outcome, 1)
	go func() { ended <- r.loop.run(e, r) }()
	for _, hung := range []string{"", "did not end until aborted"} {
		select {
		case outcome := <-ended:
			r.unsent, r.hung = outcome.Unsent, hung
			return
		case <-time.After(r.patience):
			r.stop()
			r.abort()
		}
	}
	r.hung = "did not end when aborted"
}

// describe says what became of the requests: "200 2; 0 0 timeout reused; retried 1" are an answer of two bytes and a
// time-out on the same connection, after one retry.
func (r *ride) describe() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.records, func(a, b record.Record) int { return int(a.Line) - int(b.Line) })
	var parts []string
	for _, one := range r.records {
		parts = append(parts, r.one(one))
	}
	note := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", what, n))
		}
	}
	note(r.retried, "retried")
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		note(r.skipped[reason], reason)
	}
	if r.hung != "" {
		parts = append(parts, r.hung)
	}
	return strings.Join(parts, "; ")
}

// one says what became of a request, and what of its record cannot be true.
func (r *ride) one(of record.Record) string {
	text := fmt.Sprintf("%d %d", of.Status, of.Bytes)
	if of.Error != record.None {
		text += " " + of.Error.String()
	}
	if of.Flags&record.Reused != 0 {
		text += " reused"
	}
	if of.Status == 0 {
		return text
	}
	want := record.Flags(0)
	if r.driver.tls {
		want |= record.TLS
	}
	if r.driver.http2() {
		want |= record.HTTP2
	}
	if got := of.Flags & (record.TLS | record.HTTP2); got != want {
		text += fmt.Sprintf(" (flags %b)", got)
	}
	if of.TTFBUS == 0 || of.TTFBUS > of.TotalUS {
		text += fmt.Sprintf(" (first byte after %d µs of %d µs)", of.TTFBUS, of.TotalUS)
	}
	return text
}

// expect holds what was recorded against a row; a * stands for any number of bytes but none.
func (r *ride) expect(t *testing.T, want string) {
	t.Helper()
	if got := r.describe(); !match(want, got) {
		r.fail(t, "recorded %q, want %q", got, want)
	}
}

// fail tells that a test has failed, unless it may have been for lack of time: then it is run again.
func (r *ride) fail(t *testing.T, format string, args ...any) {
	t.Helper()
	if r.lackedTime() && r.driver.slower < 16 {
		t.Logf("again, with more time: "+format, args...)
		r.again = true
		return
	}
	t.Errorf(format, args...)
}

// lackedTime reports whether a machine that is slow explains what was recorded: something timed out or was interrupted, a
// request was due before the one before it had ended, or a reset overtook what was sent before it.
func (r *ride) lackedTime() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gap > 0 || r.hung != "" || r.stopped.Err() != nil {
		return true
	}
	ended := int64(0)
	for _, one := range r.records { // in the order in which they ended
		if one.Error == record.Timeout || one.Error == record.Reset || r.apart() > 0 && one.DueNS < ended {
			return true
		}
		ended = max(ended, one.DoneNS())
	}
	return false
}

// match reports whether a text is as wanted, word by word.
func match(want, got string) bool {
	wants, gots := strings.Fields(want), strings.Fields(got)
	return slices.EqualFunc(wants, gots, func(w, g string) bool { return w == g || (w == "*" && g != "0") })
}
