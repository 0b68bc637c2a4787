package engine

import (
	"cmp"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

func TestConnectionsAreKept(t *testing.T) {
	server, rec := oneByOne(t, 10, 1)
	if server.connections() != 1 {
		t.Errorf("one client, one request at a time: %d connections", server.connections())
	}
	reused := 0
	for _, r := range rec.records {
		if r.Flags&record.Reused != 0 {
			reused++
			if r.ConnectUS != 0 {
				t.Error("a reused connection took time to connect")
			}
		}
	}
	if reused != 9 {
		t.Errorf("%d of 10 requests say that they reused a connection", reused)
	}
}

func TestEachClientHasItsOwnConnections(t *testing.T) {
	server, _ := oneByOne(t, 12, 4)
	if server.connections() != 4 {
		t.Errorf("four clients have %d connections", server.connections())
	}
}

// oneByOne replays requests of some clients in turn, each due after the one before has ended: with more time between them
// where the machine was too slow for that.
func oneByOne(t *testing.T, requests, clients int) (*script, *memory) {
	for apartMS := int64(20); ; apartMS *= 4 {
		server := serveScript(t, always(plainOK, false))
		var entries []Entry
		for i := range requests {
			entries = append(entries, get(uint32(i%clients), "/", int64(i)*apartMS))
		}
		rec, _ := replay(t, server.url(), Options{}, entries...)
		slices.SortFunc(rec.records, func(a, b record.Record) int { return cmp.Compare(a.DueNS, b.DueNS) })
		ended, overlap := int64(0), false
		for _, one := range rec.records {
			overlap = overlap || one.DueNS < ended
			ended = max(ended, one.DoneNS())
		}
		if !overlap || apartMS > 5000 {
			return server, rec
		}
	}
}

func TestSixConnectionsAClient(t *testing.T) {
	var now, most atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(50 * time.Millisecond)
		now.Add(-1)
	}))
	defer site.Close()
	var entries []Entry
	for range 18 {
		entries = append(entries, get(7, "/", 0))
	}
	rec, _ := replay(t, site.URL, Options{}, entries...)
	queued := 0
	for _, r := range rec.records {
		if r.Flags&record.Queued != 0 {
			queued++
			if r.LagUS < 40_000 {
				t.Errorf("a request that waited for a connection says that it was sent after %d µs", r.LagUS)
			}
		}
	}
	if len(rec.records) != 18 || most.Load() != 6 || queued != 12 {
		t.Errorf("%d records, %d at once, %d queued; want 18, 6, 12", len(rec.records), most.Load(), queued)
	}
}

func TestTheCapOnConnections(t *testing.T) {
	var now, most atomic.Int32
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	site.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			most.Store(max(most.Load(), now.Add(1)))
		case http.StateClosed:
			now.Add(-1)
		}
	}
	site.Start()
	defer site.Close()
	var entries []Entry
	for i := range 40 {
		entries = append(entries, get(uint32(i), "/", 0)) // each a client of its own
	}
	rec, _ := replay(t, site.URL, Options{MaxConnections: 5}, entries...)
	if len(rec.records) != 40 {
		t.Fatalf("%d records", len(rec.records))
	}
	// A connection closed by us may be new here before the server has seen the end of the old one.
	if most.Load() > 10 {
		t.Errorf("%d connections at once with a cap of 5", most.Load())
	}
	for _, r := range rec.records {
		if r.Error != record.None {
			t.Errorf("error %s", r.Error)
		}
	}
}

func TestRequestsPastTheQueueAreSkippedAndCounted(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) }))
	defer site.Close()
	var entries []Entry
	for range 20 {
		entries = append(entries, get(1, "/", 0))
	}
	rec, _ := replay(t, site.URL, Options{MaxQueued: 4}, entries...)
	if len(rec.records) != 10 || rec.skipped[exchange.SkipCap] != 10 {
		t.Errorf("%d sent, %v skipped; want 6 at once, 4 after them, 10 skipped", len(rec.records), rec.skipped)
	}
}

func TestHTTP10HasAConnectionARequest(t *testing.T) {
	server := serveScript(t, always("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", true))
	var entries []Entry
	for i := range 3 {
		s := get(1, "/", int64(i)*30)
		s.Value.Proto = wire.HTTP10
		entries = append(entries, s)
	}
	rec, _ := replay(t, server.url(), Options{}, entries...)
	if server.connections() != 3 || len(rec.records) != 3 {
		t.Errorf("%d connections for %d requests", server.connections(), len(rec.records))
	}
	if !strings.Contains(requestsOf(server)[0], "HTTP/1.0\r\n") || !strings.Contains(requestsOf(server)[0], "Connection: close") {
		t.Errorf("%q", requestsOf(server)[0])
	}
}

func TestHTTP10FindsRoomAmongIdleConnections(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	var entries []Entry
	for range 6 {
		entries = append(entries, get(1, "/", 0)) // six connections, soon idle
	}
	old := get(1, "/", 100)
	old.Value.Proto = wire.HTTP10
	rec, _ := replay(t, server.url(), Options{Timeout: time.Second}, append(entries, old)...)
	for _, r := range rec.records {
		if r.Error != record.None {
			t.Errorf("due at %d ms: %s", r.DueNS/1e6, r.Error)
		}
	}
}

// nginx answers 304 only to the very date that it gave out.
func TestALogged304AsksWithTheServersOwnValidators(t *testing.T) {
	const modified = "Fri, 20 Nov 2026 10:00:00 GMT"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", modified)
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-Modified-Since") == modified && r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	defer site.Close()
	first, plain, again := get(1, "/a", 0), get(1, "/a", 60), get(2, "/a", 60)
	for _, s := range []Entry{first, again} {
		s.Value.LoggedStatus, s.Value.IfModifiedSince = 304, time.Unix(1e9, 0)
	}
	rec, _ := replay(t, site.URL, Options{}, first, plain, again)
	want := map[uint32][]uint16{1: {200, 200}, 2: {304}}
	got := map[uint32][]uint16{}
	for _, r := range rec.records {
		got[r.Client] = append(got[r.Client], r.Status)
	}
	if !slices.Equal(got[1], want[1]) || !slices.Equal(got[2], want[2]) {
		t.Errorf("statuses by client %v, want %v", got, want)
	}
}
