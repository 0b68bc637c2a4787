package engine_test

import (
	"strings"
	"testing"
	"time"

	"plimsoll/replay/engine/wire"
)

const timeout = 300 * time.Millisecond

// slow is a server that does not get to the end of its answer.
type slow struct {
	says string
	server
	asks []wire.Request // nil: one GET
	want string         // of the time-out; where the run is aborted instead, it is aborted
}

func doing(moves ...move) server { return server{script: always(moves...)} }

var bytes300K = strings.Repeat("x", 300_000)

// stalled are servers of HTTP/1.x that say nothing more, or next to nothing.
var stalled = []slow{
	{says: "half a head", server: doing(send("HTTP/1.1 200 OK\r\nConte"), silence), want: "0 0"},
	{says: "early hints, and no answer after them", server: doing(send(hints), silence), want: "0 0"},
	{says: "a head that drips", server: doing(send("HTTP/1.1 200 OK\r\n"), again("X: y\r\n", 20*time.Millisecond)), want: "0 0"},
	{says: "half a chunk", server: doing(send(chunked+"9\r\nhalf"), silence), want: "200 4"},
	{says: "half a long chunk", server: doing(send(chunked+"fffff\r\n"+bytes300K), silence), want: "200 300000"},
	{says: "no last chunk", server: doing(send(chunked+"4\r\nhalf\r\n"), silence), want: "200 4"},
	{says: "chunks that drip", server: doing(send(chunked), again("4\r\nmore\r\n", 20*time.Millisecond)), want: "200 *"},
	{says: "half the trailers", server: doing(send(chunked+"4\r\nhalf\r\n0\r\nX-Su"), silence), want: "200 4"},
	{says: "a body until the end, and no end", server: doing(send(old+"half"), silence), want: "200 4"},
	{says: "a long body until the end, and no end", server: doing(send(old+bytes300K), silence), want: "200 300000"},
	{says: "a request that nobody reads", server: server{greet: play{silence}}, asks: big(1), want: "0 0"},
}

// stalledAnyway are servers of HTTP/1.x and HTTP/2 alike.
var stalledAnyway = []slow{
	{says: "no answer", server: doing(silence), want: "0 0"},
	{says: "a head and no body", server: doing(answer(200, 9), silence), want: "200 0"},
	{says: "half a body", server: doing(answer(200, 9), body("half", false), silence), want: "200 4"},
	{says: "half a long body", server: doing(answer(200, 400_000), long(300_000, false), silence), want: "200 300000"},
	{says: "a body that drips", server: doing(answer(200, 1000), drip), want: "200 *"},
	{says: "a long body that drips", server: doing(answer(200, 1e6), long(300_000, false), drip), want: "200 *"},
	{says: "a long body that is whole too late", server: doing(answer(200, 300_050), long(300_000, false), repeat(49, dripOne), body("x", true)), want: "200 *"},
}

// torrents are servers that always have more, as fast as it goes.
var torrents = []slow{
	{says: "early hints without an end", server: doing(again(strings.Repeat(hints, 99), 0)), want: "0 0"},
	{says: "a body until the end, without an end", server: doing(send(old), endless), want: "200 *"},
	{says: "chunks without an end", server: doing(send(chunked), again(strings.Repeat("4\r\nmore\r\n", 999), 0)), want: "200 *"},
}

var torrentsAnyway = []slow{
	{says: "a body without an end", server: doing(answer(200, terabyte), endless), want: "200 *"},
}

// onStalled runs a test with each server that says nothing more.
func onStalled(t *testing.T, test func(t *testing.T, r *ride, row slow)) {
	for _, row := range stalled {
		onEach(t, row.says, http1, func(t *testing.T, r *ride) { test(t, r, row) })
	}
	for _, row := range stalledAnyway {
		onEach(t, row.says, http1and2, func(t *testing.T, r *ride) { test(t, r, row) })
	}
}

// onTorrents runs a test with each server that always has more. They take all of a processor, so that each driver reads
// them in one loop only: what a time-out does is the same in all.
func onTorrents(t *testing.T, test func(t *testing.T, r *ride, row slow)) {
	each := func(row slow, drivers []driver) {
		onEachOf(t, row.says, drivers, loops[:1], func(t *testing.T, r *ride) {
			defer lane()()
			test(t, r, row)
		})
	}
	for _, row := range torrents {
		each(row, http1)
	}
	for _, row := range torrentsAnyway {
		each(row, http1and2)
	}
}

// A time-out keeps what had come, and does not wait for more: not even for a server that always has more.
func TestTimeouts(t *testing.T) {
	onStalled(t, func(t *testing.T, r *ride, row slow) { timesOut(t, r, row, timeout) })
}

func TestEndlessTimeouts(t *testing.T) {
	onTorrents(t, func(t *testing.T, r *ride, row slow) { timesOut(t, r, row, 4*timeout/3) })
}

func timesOut(t *testing.T, r *ride, row slow, after time.Duration) {
	r.opts.Timeout, r.patience = after, 10*after
	r.run(t, row.start(t, r.driver), row.or(gets(1)))
	r.expect(t, row.want+" timeout")
	for _, one := range r.records {
		if took := time.Duration(one.TotalUS) * time.Microsecond; took < r.opts.Timeout || took > r.patience {
			r.fail(t, "a time-out of %v counts as %v", r.opts.Timeout, took)
		}
	}
}

// lanes are for tests that use all of a processor: few at once, or none of them gets anywhere.
var lanes = make(chan struct{}, 2)

// lane takes a lane and returns how it is given back.
func lane() func() {
	lanes <- struct{}{}
	return func() { <-lanes }
}

// The second interrupt leaves at once, whatever the server does, and keeps what had come.
func TestSecondInterrupts(t *testing.T) {
	onStalled(t, leavesAtOnce)
}

func TestEndlessSecondInterrupts(t *testing.T) {
	onTorrents(t, leavesAtOnce)
}

func leavesAtOnce(t *testing.T, r *ride, row slow) {
	r.opts.Timeout = time.Minute
	row.marked = func() {
		r.later(50*time.Millisecond, r.stop)
		r.later(150*time.Millisecond, r.abort)
	}
	r.run(t, row.start(t, r.driver), row.or(gets(1)))
	r.expect(t, row.want+" aborted")
}

func (s slow) or(asks []wire.Request) []wire.Request {
	if s.asks != nil {
		return s.asks
	}
	return asks
}

func TestAfterATimeout(t *testing.T) {
	onEach(t, "the next request has a fresh connection, or a stream of its own", http1and2, func(t *testing.T, r *ride) {
		r.opts.Timeout, r.gap = timeout, timeout
		r.run(t, server{script: asking(map[string]play{"/1": {answer(200, 9), silence}})}.start(t, r.driver), gets(2))
		want := "200 0 timeout; 200 2"
		if r.driver.http2() {
			want += " reused"
		}
		r.expect(t, want)
	})
}
