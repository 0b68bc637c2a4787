package engine_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// first does one thing so many times, and then answers.
func first(times int32, moves ...move) func() script {
	return func() script {
		var n atomic.Int32
		return func(asked) play {
			if n.Add(1) <= times {
				return moves
			}
			return play{good}
		}
	}
}

func TestHTTP2Conversations(t *testing.T) {
	rows := []struct {
		says   string
		asks   []wire.Request
		script func() script
		want   string // without whether a connection was reused: a refused stream may be sent again on any
	}{
		{"a refused stream is sent again", gets(1), first(1, rst(http2.ErrCodeRefusedStream)), "200 2; retried 1"},
		{"a refused stream is sent again once, not twice", gets(2), first(2, rst(http2.ErrCodeRefusedStream)), "0 0 h2_refused; 200 2; retried 1"},
		{"a refused POST was not handled, and is sent again", asks("POST", 1), first(1, rst(http2.ErrCodeRefusedStream)), "200 2; retried 1"},
		{"GOAWAY refuses a stream: sent again on a fresh connection", gets(2), first(1, goAway(0, http2.ErrCodeNo)), "200 2; 200 2; retried 1"},
		{"GOAWAY refuses it twice", gets(2), first(2, goAway(0, http2.ErrCodeNo)), "0 0 h2_refused; 200 2; retried 1"},
		{"GOAWAY with an error, and the connection is closed: sent again", gets(2), first(1, goAway(0, http2.ErrCodeEnhanceYourCalm), hangUp), "200 2; 200 2; retried 1"},
		{"GOAWAY for later streams, then closed: this one was lost", gets(2), first(1, goAway(1, http2.ErrCodeNo), hangUp), "0 0 closed_early; 200 2"},
	}
	for _, row := range rows {
		onEach(t, row.says, http2only, func(t *testing.T, r *ride) {
			r.run(t, server{script: row.script()}.start(t, r.driver), row.asks)
			if got := strings.ReplaceAll(r.describe(), " reused", ""); got != row.want {
				r.fail(t, "recorded %q, want %q", got, row.want)
			}
		})
	}
}

// HTTP/2 has no form for a request line with a whole URL: it is skipped, and the loop goes on.
func TestHTTP2SkipsWhatItCannotSend(t *testing.T) {
	absolute := wire.Request{Method: "GET", Target: "http://a/x"}
	rows := []struct {
		says string
		asks []wire.Request
		want string
	}{
		{"the first of all", append([]wire.Request{absolute}, gets(2)...), "200 2; 200 2 reused; unsendable_h2 1"},
		{"between two others", append(append(gets(1), absolute), gets(1)...), "200 2; 200 2 reused; unsendable_h2 1"},
		{"the last", append(gets(1), absolute, absolute), "200 2; unsendable_h2 2"},
		{"nothing else", []wire.Request{absolute}, "unsendable_h2 1"},
	}
	for _, row := range rows {
		onEach(t, row.says, http2only, func(t *testing.T, r *ride) {
			r.patience = 3 * time.Second
			r.run(t, server{script: fine}.start(t, r.driver), row.asks)
			r.expect(t, row.want)
		})
	}
}

// A server that allows no streams, once it has answered the first.
func noMore(then ...move) server {
	noStreams := settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
	return server{script: always(append(play{noStreams, breath, good}, then...)...)}
}

func TestHTTP2WithoutStreams(t *testing.T) {
	onEach(t, "what waits for a stream times out", http2only, func(t *testing.T, r *ride) {
		r.opts.Timeout, r.gap, r.patience = timeout, 250*time.Millisecond, 4*time.Second
		r.run(t, noMore().start(t, r.driver), gets(2))
		r.expect(t, "200 2; 0 0 timeout")
	})
	onEach(t, "the first interrupt ends the waiting", http2only, func(t *testing.T, r *ride) {
		r.opts.Timeout, r.patience = time.Minute, 4*time.Second
		s := noMore(breath, mark)
		s.marked = r.stop
		r.run(t, s.start(t, r.driver), gets(3))
		r.expect(t, "200 2")
		if r.unsent != 2 {
			r.fail(t, "%d unsent, want 2", r.unsent)
		}
	})
	onEach(t, "so does the second", http2only, func(t *testing.T, r *ride) {
		r.opts.Timeout, r.patience = time.Minute, 4*time.Second
		s := noMore(breath, mark)
		s.marked = func() {
			r.stop()
			r.later(50*time.Millisecond, r.abort)
		}
		r.run(t, s.start(t, r.driver), gets(3))
		r.expect(t, "200 2")
	})
}

// A server that says much and reads nothing stops its own client, and nobody else.
func TestHTTP2FloodsOfFrames(t *testing.T) {
	rows := []struct {
		says, frame string
	}{
		{"pings that want to be answered", "\x00\x00\x08\x06\x00\x00\x00\x00\x008 bytes!"},
		{"settings that want to be acknowledged", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	}
	for _, row := range rows {
		onEach(t, row.says, http2only, func(t *testing.T, r *ride) {
			var bad []wire.Request
			for range map[string]int{"open": 3, "max": 1, "users": 2}[r.loop.name] { // closed loops wait for each time-out
				bad = append(bad, wire.Request{Method: "GET", Target: "/bad"})
			}
			r.opts.Timeout, r.gap, r.patience = 2*timeout, timeout/2, 5*time.Second
			flood := play{deafen, again(strings.Repeat(row.frame, 900), 0)}
			r.run(t, server{script: asking(map[string]play{"/bad": flood})}.start(t, r.driver), bad, gets(10))
			for _, one := range r.records {
				if one.Line < perClient && one.Error == record.None {
					t.Error("the client whose server reads nothing has an answer")
				}
			}
			r.records = slices.DeleteFunc(r.records, func(one record.Record) bool { return one.Line < perClient })
			r.retried = 0              // those of the flooded client
			for i := range r.records { // --speed max may send them where that one's were
				r.records[i].Flags &^= record.Reused
			}
			r.expect(t, "200 2"+strings.Repeat("; 200 2", 9))
		})
	}
}
