package engine

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

func TestMaxSendsEachOnceOverItsConnections(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	var entries []Entry
	for i := range 5000 {
		entries = append(entries, get(uint32(i%300), "/", int64(i)))
	}
	rec := &memory{}
	e := New(targetOf(t, server.url(), false), noHeaders(t), Options{}, rec, context.Background())
	outcome := e.Max(context.Background(), slices.Values(entries), 8, 0)
	if outcome.Cause != nil || len(rec.records) != 5000 || server.connections() != 8 {
		t.Fatalf("%d records over %d connections, %v", len(rec.records), server.connections(), outcome)
	}
	seen := map[uint64]bool{}
	for _, r := range rec.records {
		seen[r.Line] = true
		if r.LagUS != 0 || r.Error != record.None || r.Flags&record.Queued != 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(seen) != 5000 {
		t.Errorf("%d different requests of 5000", len(seen))
	}
}

func TestMaxMixesProtocols(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	var entries []Entry
	for i := range 60 {
		s := get(1, "/", int64(i))
		if i%3 == 0 {
			s.Value.Proto = wire.HTTP10
		}
		entries = append(entries, s)
	}
	rec := &memory{}
	e := New(targetOf(t, server.url(), false), noHeaders(t), Options{Timeout: time.Second}, rec, context.Background())
	e.Max(context.Background(), slices.Values(entries), 3, 0)
	for _, r := range rec.records {
		if r.Error != record.None {
			t.Errorf("request %d: %s", r.Line, r.Error)
		}
	}
}

func TestMaxEndsAtItsLimit(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	endless := func(yield func(Entry) bool) {
		for yield(get(1, "/", 0)) {
		}
	}
	rec := &memory{}
	e := New(targetOf(t, server.url(), false), noHeaders(t), Options{}, rec, context.Background())
	if outcome := e.Max(context.Background(), endless, 2, 200*time.Millisecond); outcome.Cause != nil || len(rec.records) == 0 {
		t.Errorf("%v, %d records", outcome, len(rec.records))
	}
}

func visitsOf(visits ...Visit) iter.Seq[Visit] { return slices.Values(visits) }

func visitOf(line uint64, atMS ...int64) Visit {
	var v Visit
	for _, at := range atMS {
		v = append(v, Entry{AtNS: at * 1e6, Value: &exchange.LoggedRequest{Request: wire.Request{Method: "GET", Target: "/"}, Line: line, LoggedBytes: -1}})
	}
	return v
}

func TestUsersLiveThroughVisitsWithTheirPauses(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Millisecond) }))
	defer site.Close()
	rec := &memory{}
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{}, rec, context.Background())
	outcome := e.Users(context.Background(), visitsOf(visitOf(1, 0, 100, 100, 200), visitOf(2, 0, 50)), 2, 0, 0, 1)
	if outcome.Cause != nil || len(rec.records) != 6 {
		t.Fatalf("%d records, %v", len(rec.records), outcome)
	}
	byLine := map[uint64][]int64{}
	for _, r := range rec.records {
		byLine[r.Line] = append(byLine[r.Line], r.DueNS/1e6)
	}
	slices.Sort(byLine[1])
	d := byLine[1]
	// The third request has no pause before it: it is due when the second is answered, after 10 ms at least.
	if d[0] != 0 || d[1] != 100 || d[2] < 110 || d[3]-d[2] != 100 {
		t.Errorf("due at %v ms", d)
	}
}

func TestManyUsersShareFewVisits(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	rec := &memory{}
	e := New(targetOf(t, server.url(), false), noHeaders(t), Options{}, rec, context.Background())
	e.Users(context.Background(), visitsOf(visitOf(1, 0, 1), visitOf(2, 0)), 50, 10*time.Millisecond, 0, 1)
	clients := map[uint32]bool{}
	for _, r := range rec.records {
		clients[r.Client] = true
	}
	if len(rec.records) != 75 || len(clients) != 50 || server.connections() != 50 {
		t.Errorf("%d requests by %d users over %d connections; want 75, 50, 50",
			len(rec.records), len(clients), server.connections())
	}
}

func TestFewUsersLiveThroughManyVisits(t *testing.T) {
	var now, most atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(time.Millisecond)
		now.Add(-1)
	}))
	defer site.Close()
	var visits []Visit
	for i := range 40 {
		visits = append(visits, visitOf(uint64(i), 0, 1))
	}
	rec := &memory{}
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{}, rec, context.Background())
	e.Users(context.Background(), visitsOf(visits...), 3, 0, 0, 1)
	if len(rec.records) != 80 || most.Load() > 3 {
		t.Errorf("%d requests of 80, %d at once by 3 users", len(rec.records), most.Load())
	}
}

func TestUsersRepeatUntilTheLimit(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	rec := &memory{}
	e := New(targetOf(t, server.url(), false), noHeaders(t), Options{}, rec, context.Background())
	outcome := e.Users(context.Background(), visitsOf(visitOf(1, 0, 20)), 2, 0, 300*time.Millisecond, 1)
	if outcome.Cause != nil || len(rec.records) <= 4 { // two users with one visit of two requests each, and again
		t.Errorf("%d records, %v", len(rec.records), outcome)
	}
	for _, r := range rec.records {
		if r.DueNS >= 300e6 {
			t.Errorf("due at %d ns, past the limit", r.DueNS)
		}
	}
}
