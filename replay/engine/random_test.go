package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/replay/engine/wire"
)

// Servers at random: of all that stands in the tables, in any order and in any pieces. PLIMSOLL_SEEDS=1000 tries more of
// them; -run 'TestRandom.*/seed_7/' tries one again.
func TestRandomConversations(t *testing.T) {
	everything := slices.DeleteFunc(slices.Concat(answers, failures, endings, stale), func(a reply) bool { return a.atOnce })
	for seed := range seeds(20) {
		drawn := draw(seed, everything)
		onEach(t, fmt.Sprintf("seed %d", seed), http1, drawn.run)
	}
}

func TestRandomConversationsOfHTTP2(t *testing.T) {
	everything := slices.Concat(answers2, failures2, endings, stale)
	for seed := range seeds(20) {
		drawn := draw(seed, everything)
		onEach(t, fmt.Sprintf("seed %d", seed), http2only, drawn.run)
	}
}

func TestRandomConversationsOfBothVersions(t *testing.T) {
	both := slices.Concat(endings, stale, []reply{
		{says: "an answer", play: play{good}, want: "200 2", keep: true},
		{says: "an answer without a body", play: play{answer(404, 0)}, want: "404 0", keep: true},
		{says: "an answer after a pause", play: play{answer(200, 2), pause(20 * time.Millisecond), body("ok", true)}, want: "200 2", keep: true},
	})
	for seed := range seeds(5) {
		drawn := draw(seed, both)
		onEach(t, fmt.Sprintf("seed %d", seed), http1and2, drawn.run)
	}
}

// A request that times out costs its connection over HTTP/1.x, and its stream over HTTP/2. The open loop is not here:
// what waits behind such a request times out with it.
func TestRandomConversationsWithoutAnEnd(t *testing.T) {
	rows := []struct {
		drivers []driver
		others  []reply
	}{
		{http1, slices.Concat(answers, failures, endings, stale)},
		{http2only, slices.Concat(answers2, failures2, endings, stale)},
	}
	for _, row := range rows {
		others := slices.DeleteFunc(row.others, func(a reply) bool { return a.atOnce })
		for seed := range seeds(5) {
			drawn := draw(seed, others)
			for i := range unending {
				drawn.replies[1+3*i] = unending[i]
				drawn.replies[1+3*i].keep = row.drivers[0].http2()
			}
			onEachOf(t, fmt.Sprintf("seed %d", seed), row.drivers, loops[1:], drawn.run)
		}
	}
}

// unending are servers that do not get to the end of their answer.
var unending = []reply{
	{says: "nothing is read, and nothing said", play: play{silence}, want: "0 0 timeout"},
	{says: "half a body, and no more", play: play{answer(200, 9), body("half", false), silence}, want: "200 4 timeout"},
}

// seeds are the numbers from 1 to n, or as many as are asked for.
func seeds(n uint64) func(yield func(uint64) bool) {
	if more, err := strconv.ParseUint(os.Getenv("PLIMSOLL_SEEDS"), 10, 64); err == nil {
		n = more
	}
	return func(yield func(uint64) bool) {
		for seed := uint64(1); seed <= n && yield(seed); seed++ {
		}
	}
}

// stale is a server that closes a connection as it is used again.
var stale = []reply{{says: closesStale, play: play{good}, want: "200 2", keep: true}}

const closesStale = "closed just as it is used again"

// lot is a conversation drawn by lot.
type lot struct {
	seed    uint64
	replies []reply
}

func draw(seed uint64, from []reply) lot {
	random := rand.New(rand.NewPCG(seed, 0))
	l := lot{seed: seed}
	for range 8 {
		l.replies = append(l.replies, from[random.IntN(len(from))])
	}
	return l
}

func (l lot) asks() []wire.Request {
	all := gets(len(l.replies))
	for i, one := range l.replies {
		if one.method != "" {
			all[i].Method = one.method
		}
	}
	return all
}

// script gives each target its reply. A stale connection is closed when it is used for a target for the first time.
func (l lot) script() script {
	var closed sync.Map
	return func(a asked) play {
		i, _ := strconv.Atoi(a.target[1:])
		one := l.replies[i-1]
		if one.says == closesStale && a.request > 0 {
			if _, before := closed.LoadOrStore(a.target, true); !before {
				return play{hangUp}
			}
		}
		return one.play
	}
}

// want is what is recorded of each request, and how many were sent again: those whose connection had been kept, and
// ended without a word.
func (l lot) want() string {
	var all []string
	retried, kept := 0, false
	for _, one := range l.replies {
		all = append(all, one.want)
		if kept && (one.mute || one.says == closesStale) {
			retried++
		}
		kept = one.keep
	}
	if retried > 0 {
		all = append(all, fmt.Sprintf("retried %d", retried))
	}
	return strings.Join(all, "; ")
}

func (l lot) run(t *testing.T, r *ride) {
	r.opts.Timeout, r.patience = time.Second, time.Minute
	r.run(t, server{script: l.script(), pieces: l.seed}.start(t, r.driver), l.asks())
	if got := strings.ReplaceAll(r.describe(), " reused", ""); !match(l.want(), got) {
		of := ""
		for i, one := range l.replies {
			of += fmt.Sprintf("\n  %d: %s", i+1, one.says)
		}
		r.fail(t, "recorded %q, want %q, of:%s", got, l.want(), of)
	}
}
