package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/replay/record"
)

func TestOneRequestEachWay(t *testing.T) {
	rows := []struct {
		why    string
		answer string
		close  bool
		error  record.ErrorKind
		status uint16
		bytes  int64
	}{
		{"a whole answer", plainOK, false, record.None, 200, 2},
		{"an answer that ends with the connection", "HTTP/1.0 200 OK\r\n\r\nabc", true, record.None, 200, 3},
		{"early hints first", "HTTP/1.1 103 Early Hints\r\n\r\n" + plainOK, false, record.None, 200, 2},
		{"closed without a word", "", true, record.ClosedEarly, 0, 0},
		{"closed in the middle of the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true, record.ClosedEarly, 200, 4},
		{"no HTTP", "220 mail.example ESMTP\r\n", true, record.BadResponse, 0, 0},
		{"nothing comes", "", false, record.Timeout, 0, 0},
	}
	for _, row := range rows {
		server := serveScript(t, always(row.answer, row.close))
		rec, outcome := replay(t, server.url(), Options{Timeout: 300 * time.Millisecond}, get(1, "/", 0))
		if outcome.Cause != nil || len(rec.records) != 1 {
			t.Fatalf("%s: %d records, %v", row.why, len(rec.records), outcome)
		}
		r := rec.records[0]
		if r.Error != row.error || r.Status != row.status || r.Bytes != row.bytes {
			t.Errorf("%s: error %s status %d bytes %d, want %s %d %d", row.why, r.Error, r.Status, r.Bytes, row.error, row.status, row.bytes)
		}
		if r.TotalUS == 0 || r.TTFBUS > r.TotalUS || (r.Error == record.None && r.TTFBUS == 0) {
			t.Errorf("%s: first byte after %d µs of %d µs", row.why, r.TTFBUS, r.TotalUS)
		}
		if row.error == record.Timeout && (r.TotalUS < 300_000 || r.TotalUS > 2_000_000) {
			t.Errorf("a time-out of 300 ms counts as %d µs", r.TotalUS)
		}
	}
}

func TestConnectionsAreKept(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	var shots []*Shot
	for i := range 10 {
		shots = append(shots, get(1, "/", int64(i)*20))
	}
	rec, _ := replay(t, server.url(), Options{}, shots...)
	if server.conns != 1 {
		t.Errorf("one client, one request at a time: %d connections", server.conns)
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
	server := serveScript(t, always(plainOK, false))
	var shots []*Shot
	for i := range 12 {
		shots = append(shots, get(uint32(i%4), "/", int64(i)*20))
	}
	replay(t, server.url(), Options{}, shots...)
	if server.conns != 4 {
		t.Errorf("four clients have %d connections", server.conns)
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
	var shots []*Shot
	for range 18 {
		shots = append(shots, get(7, "/", 0))
	}
	rec, _ := replay(t, site.URL, Options{}, shots...)
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
	var shots []*Shot
	for i := range 40 {
		shots = append(shots, get(uint32(i), "/", 0)) // each a client of its own
	}
	rec, _ := replay(t, site.URL, Options{MaxConnections: 5}, shots...)
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
	var shots []*Shot
	for range 20 {
		shots = append(shots, get(1, "/", 0))
	}
	rec, _ := replay(t, site.URL, Options{MaxQueued: 4}, shots...)
	if len(rec.records) != 10 || rec.skipped[SkipCap] != 10 {
		t.Errorf("%d sent, %v skipped; want 6 at once, 4 after them, 10 skipped", len(rec.records), rec.skipped)
	}
}

func TestHTTP10HasAConnectionARequest(t *testing.T) {
	server := serveScript(t, always("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", true))
	var shots []*Shot
	for i := range 3 {
		s := get(1, "/", int64(i)*30)
		s.Proto = HTTP10
		shots = append(shots, s)
	}
	rec, _ := replay(t, server.url(), Options{}, shots...)
	if server.conns != 3 || len(rec.records) != 3 {
		t.Errorf("%d connections for %d requests", server.conns, len(rec.records))
	}
	if !strings.Contains(server.requests[0], "HTTP/1.0\r\n") || !strings.Contains(server.requests[0], "Connection: close") {
		t.Errorf("%q", server.requests[0])
	}
}

func TestHTTP10FindsRoomAmongIdleConnections(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	var shots []*Shot
	for range 6 {
		shots = append(shots, get(1, "/", 0)) // six connections, soon idle
	}
	old := get(1, "/", 100)
	old.Proto = HTTP10
	rec, _ := replay(t, server.url(), Options{Timeout: time.Second}, append(shots, old)...)
	for _, r := range rec.records {
		if r.Error != record.None {
			t.Errorf("due at %d ms: %s", r.DueNS/1e6, r.Error)
		}
	}
}

// A server may close a kept connection at the instant at which the next request is sent. Browsers send it again.
func TestAStaleConnectionIsRetriedOnce(t *testing.T) {
	server := serveScript(t, func(conn, request int) (string, bool) {
		if conn == 0 && request == 1 {
			return "", true
		}
		return plainOK, false
	})
	rec, _ := replay(t, server.url(), Options{}, get(1, "/a", 0), get(1, "/b", 30))
	if rec.retried != 1 || len(rec.records) != 2 || rec.records[1].Error != record.None || server.conns != 2 {
		t.Errorf("retried %d, %d connections, records %+v", rec.retried, server.conns, rec.records)
	}
	if rec.records[1].Flags&record.Reused != 0 {
		t.Error("the retry says that it reused a connection")
	}
}

func TestAServerThatAlwaysClosesIsAnErrorNotALoop(t *testing.T) {
	server := serveScript(t, func(_, request int) (string, bool) { return map[bool]string{true: plainOK}[request == 0], request > 0 })
	var shots []*Shot
	for i := range 6 {
		shots = append(shots, get(1, "/", int64(i)*30))
	}
	rec, _ := replay(t, server.url(), Options{}, shots...)
	if len(rec.records) != 6 {
		t.Errorf("%d records of 6", len(rec.records))
	}
}

func TestDueInstantsAreKept(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	var shots []*Shot
	for i := range 50 {
		shots = append(shots, get(uint32(i%5), "/", int64(i)*5))
	}
	rec, _ := replay(t, site.URL, Options{}, shots...)
	var dues []int64
	for _, r := range rec.records {
		dues = append(dues, r.DueNS/1e6)
	}
	slices.Sort(dues)
	for i, due := range dues {
		if due != int64(i)*5 {
			t.Fatalf("request %d was due at %d ms", i, due)
		}
	}
}

// The heart of it: a server that stalls is felt by all who would have come meanwhile.
func TestAStallIsMeasuredFromDue(t *testing.T) {
	var gate sync.RWMutex
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		gate.RLock()
		defer gate.RUnlock()
	}))
	defer site.Close()
	gate.Lock()
	time.AfterFunc(400*time.Millisecond, gate.Unlock)
	for _, connections := range []int{0, 1} { // without a cap, and with one connection for all
		var shots []*Shot
		for i := range 40 {
			shots = append(shots, get(1, "/", int64(i)*10))
		}
		rec, _ := replay(t, site.URL, Options{MaxConnections: connections}, shots...)
		slow := 0
		for _, r := range rec.records {
			if r.ResponseUS() > 100_000 {
				slow++
			}
		}
		if slow < 25 {
			t.Errorf("with a cap of %d, %d of 40 requests felt a stall of 400 ms in which they all were due", connections, slow)
		}
		gate.Lock()
		time.AfterFunc(400*time.Millisecond, gate.Unlock)
	}
}

func TestInterruptFinishesWhatIsInFlight(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(200 * time.Millisecond) }))
	defer site.Close()
	var shots []*Shot
	for i := range 100 {
		shots = append(shots, get(uint32(i), "/", int64(i)*100))
	}
	rec := &memory{}
	stop, cancel := context.WithCancelCause(context.Background())
	why := fmt.Errorf("enough")
	time.AfterFunc(250*time.Millisecond, func() { cancel(why) })
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{}, rec, context.Background())
	outcome := e.Open(stop, list(shots...))
	if outcome.Cause != why || int(outcome.Unsent)+len(rec.records) != 100 || len(rec.records) == 0 {
		t.Errorf("cause %v, %d sent, %d unsent of 100", outcome.Cause, len(rec.records), outcome.Unsent)
	}
	for _, r := range rec.records {
		if r.Error != record.None {
			t.Errorf("in flight at the interrupt: %s", r.Error)
		}
	}
}

func TestASecondInterruptLeavesAtOnce(t *testing.T) {
	release := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer site.Close()
	defer close(release)
	var shots []*Shot
	for i := range 20 {
		shots = append(shots, get(1, "/", int64(i))) // six in flight, the others waiting
	}
	rec := &memory{}
	stop, cancel := context.WithCancel(context.Background())
	abort, leave := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	time.AfterFunc(200*time.Millisecond, leave)
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{Timeout: time.Minute}, rec, abort)
	outcome := e.Open(stop, list(shots...))
	if len(rec.records) != 6 || outcome.Unsent != 14 {
		t.Errorf("%d records, %d unsent; want 6 and 14", len(rec.records), outcome.Unsent)
	}
	for _, r := range rec.records {
		if r.Error != record.Aborted {
			t.Errorf("cut off: %s", r.Error)
		}
	}
}

func TestTargetDies(t *testing.T) {
	server := serveScript(t, always(plainOK, true))
	target := targetOf(t, server.url(), false)
	_ = server.Close()
	now := int64(0)
	died := false
	h := &health{onDeath: func() { died = true }}
	for range deadRequests * 2 {
		now += int64(deadAfter) / deadRequests
		h.note(now, record.ConnectRefused)
	}
	if !died {
		t.Error("nobody noticed")
	}
	if err := target.Check(context.Background(), time.Second); err == nil || !strings.Contains(err.Error(), "refuses connections") {
		t.Errorf("%v", err)
	}
}

func TestHealthIsNotImpatient(t *testing.T) {
	rows := []struct {
		why  string
		note func(h *health)
	}{
		{"many failures within a second are a restart", func(h *health) {
			for i := range int64(10_000) {
				h.note(i*100_000, record.ConnectRefused)
			}
		}},
		{"one answer in between and it lives", func(h *health) {
			for i := range int64(1000) {
				h.note(i*1e9, map[bool]record.ErrorKind{true: record.ConnectRefused}[i%40 != 0])
			}
		}},
		{"time-outs are slowness", func(h *health) {
			for i := range int64(1000) {
				h.note(i*1e9, record.Timeout)
			}
		}},
	}
	for _, row := range rows {
		h := &health{onDeath: func() { t.Error(row.why) }}
		row.note(h)
	}
}

func TestWarmupIsMarked(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	rec, _ := replay(t, server.url(), Options{Warmup: 50 * time.Millisecond}, get(1, "/", 0), get(1, "/", 49), get(1, "/", 50))
	marked := 0
	for _, r := range rec.records {
		if r.Flags&record.Warmup != 0 {
			marked++
		}
	}
	if marked != 2 {
		t.Errorf("%d requests marked as warm-up, want 2", marked)
	}
}

func TestABigHeadDoesNotHoldUpTheNextRequest(t *testing.T) {
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	site.Config.MaxHeaderBytes = 2 << 20
	site.Start()
	defer site.Close()
	rec, _ := replay(t, site.URL, Options{}, get(1, "/", 0), get(1, "/"+strings.Repeat("a", 1<<20), 30), get(2, "/", 31))
	for _, r := range rec.records {
		if r.Error != record.None || r.Status != 200 {
			t.Errorf("line %d: %s, status %d", r.Line, r.Error, r.Status)
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
	for _, s := range []*Shot{first, again} {
		s.LoggedStatus, s.IfModifiedSince = 304, time.Unix(1e9, 0)
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
