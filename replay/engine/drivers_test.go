package engine

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/engine/eventloop"
	"plimsoll/replay/record"
)

// TestDriversJoinByNeed: beside the server a run begins with one, and others join while those there are busy. On a
// machine of its own it has one a core. No request is lost or sent twice when users, slots or clients change hands.
func TestDriversJoinByNeed(t *testing.T) {
	if !eventloop.Supported {
		t.Skip("no event loops here")
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer site.Close()
	const fewest, clients = 400, 40
	var sent atomic.Int64 // attempts that the sequences gave, and whether they are to go on
	var alone atomic.Bool
	entries := func(yield func(Entry) bool) {
		deadline := time.Now().Add(30 * time.Second)
		for i := int64(0); i < fewest || alone.Load() && time.Now().Before(deadline); i++ {
			s := get(uint32(i%clients), "/", i/4)
			s.Value.Line = uint64(i)
			sent.Add(1)
			if !yield(s) {
				return
			}
		}
	}
	modes := map[string]func(e *Engine) Outcome{
		"open": func(e *Engine) Outcome { return e.Open(context.Background(), entries) },
		"max":  func(e *Engine) Outcome { return e.Max(context.Background(), entries, 8, 0) },
		"users": func(e *Engine) Outcome {
			visits := func(yield func(Visit) bool) {
				var visit Visit
				entries(func(s Entry) bool {
					if visit = append(visit, Entry{AtNS: int64(len(visit)) * 10e6, Value: s.Value}); len(visit) < 10 {
						return true
					}
					whole := visit
					visit = nil
					return yield(whole)
				})
				if len(visit) > 0 {
					yield(visit)
				}
			}
			return e.Users(context.Background(), visits, clients, 0, 0, 1)
		},
	}
	rows := []struct {
		why   string
		local bool
		cores int
		busy  float64
		least int
		most  int
	}{
		{"beside the server, not busy", true, 4, 2, 1, 1},
		{"beside the server, always busy", true, 4, -1, 2, 4},
		{"beside the server, on the one core that it leaves", true, 1, -1, 1, 1},
		{"on a machine of its own", false, 3, 2, 3, 3},
	}
	patience, share := looksEach, busyShare
	defer func() { looksEach, busyShare = patience, share }()
	looksEach = time.Millisecond
	for _, row := range rows {
		for mode, run := range modes {
			busyShare = row.busy
			to := targetOf(t, site.URL, true)
			to.Local = row.local
			rec := &memory{}
			e := New(to, noHeaders(t), Options{Cores: row.cores, MaxConnections: 400}, rec, context.Background())
			e.joined = func() { alone.Store(false) }
			alone.Store(row.local && row.least > 1)
			sent.Store(0)
			outcome := run(e)
			requests := int(sent.Load())
			if outcome.Drivers < row.least || outcome.Drivers > row.most || outcome.Cause != nil || outcome.Unsent != 0 {
				t.Errorf("%s, %s: %+v, want %d to %d drivers", row.why, mode, outcome, row.least, row.most)
			}
			if row.local && outcome.Nice != 0 {
				t.Errorf("%s, %s: nice %d beside the server", row.why, mode, outcome.Nice)
			}
			times := map[uint64]int{}
			for _, r := range rec.records {
				times[r.Line]++
				if r.Error != record.None {
					t.Errorf("%s, %s: line %d ends with %s", row.why, mode, r.Line, r.Error)
				}
			}
			if len(times) != requests || len(rec.records) != requests {
				t.Errorf("%s, %s: %d records of %d lines, want %d", row.why, mode, len(rec.records), len(times), requests)
			}
		}
	}
}
