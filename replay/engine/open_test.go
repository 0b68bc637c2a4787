package engine

import (
	"context"
	"fmt"
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

func TestDueInstantsAreKept(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	var entries []Entry
	for i := range 50 {
		entries = append(entries, get(uint32(i%5), "/", int64(i)*5))
	}
	rec, _ := replay(t, site.URL, Options{}, entries...)
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
		var entries []Entry
		for i := range 40 {
			entries = append(entries, get(1, "/", int64(i)*10))
		}
		rec, _ := replay(t, site.URL, Options{MaxConnections: connections}, entries...)
		slow := 0
		for _, r := range rec.records {
			if r.ResponseUS() > 100_000 {
				slow++
			}
		}
		if slow < 25 {
			t.Errorf("with a cap of %d, %d of 40 requests felt a stall of 400 ms in which they all were due",
				connections, slow)
		}
		gate.Lock()
		time.AfterFunc(400*time.Millisecond, gate.Unlock)
	}
}

func TestInterruptFinishesWhatIsInFlight(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(200 * time.Millisecond) }))
	defer site.Close()
	var entries []Entry
	for i := range 100 {
		entries = append(entries, get(uint32(i), "/", int64(i)*100))
	}
	rec := &memory{}
	stop, cancel := context.WithCancelCause(context.Background())
	why := fmt.Errorf("enough")
	time.AfterFunc(250*time.Millisecond, func() { cancel(why) })
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{}, rec, context.Background())
	outcome := e.Open(stop, slices.Values(entries))
	if outcome.Cause != why || int(outcome.Unsent)+len(rec.records) != 100 || len(rec.records) == 0 {
		t.Errorf("cause %v, %d sent, %d unsent of 100", outcome.Cause, len(rec.records), outcome.Unsent)
	}
	for _, r := range rec.records {
		if r.Error != record.None {
			t.Errorf("in flight at the interrupt: %s", r.Error)
		}
	}
}

// The rest of a long schedule is supplied to all event loops in turn: none may wait for what another has not taken.
func TestAnInterruptCountsALongRest(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	const all = 50_000 // more than wait for one loop
	entries := make([]Entry, all)
	for i := range entries {
		entries[i] = get(uint32(i), "/", int64(i)*1000)
	}
	rec := &memory{}
	stop, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	ended := make(chan Outcome)
	go func() {
		ended <- New(targetOf(t, site.URL, false), noHeaders(t), Options{}, rec, context.Background()).Open(stop, slices.Values(entries))
	}()
	select {
	case outcome := <-ended:
		if int(outcome.Unsent)+len(rec.records) != all {
			t.Errorf("%d sent and %d unsent of %d", len(rec.records), outcome.Unsent, all)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

func TestASecondInterruptLeavesAtOnce(t *testing.T) {
	release := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer site.Close()
	defer close(release)
	var entries []Entry
	for i := range 20 {
		entries = append(entries, get(1, "/", int64(i))) // six in flight, the others waiting
	}
	rec := &memory{}
	stop, cancel := context.WithCancel(context.Background())
	abort, leave := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	time.AfterFunc(200*time.Millisecond, leave)
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{Timeout: time.Minute}, rec, abort)
	outcome := e.Open(stop, slices.Values(entries))
	if len(rec.records) != 6 || outcome.Unsent != 14 {
		t.Errorf("%d records, %d unsent; want 6 and 14", len(rec.records), outcome.Unsent)
	}
	for _, r := range rec.records {
		if r.Error != record.Aborted {
			t.Errorf("cut off: %s", r.Error)
		}
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

// startedAt remembers the instant that due instants count from.
type startedAt struct {
	*memory
	at time.Time
}

func (s *startedAt) Start(at time.Time) error {
	s.at = at
	return nil
}

func TestAllCountFromTheGivenStart(t *testing.T) {
	var arrived atomic.Pointer[time.Time]
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now := time.Now()
		arrived.Store(&now)
	}))
	defer site.Close()
	for _, row := range []struct {
		says string
		in   time.Duration
	}{
		{"a start that is still to come is waited for", 200 * time.Millisecond},
		{"after one that is past, requests are late, and say so", -time.Second},
	} {
		rec := &startedAt{memory: &memory{}}
		start := time.Now().Add(row.in)
		e := New(targetOf(t, site.URL, false), noHeaders(t), Options{StartAt: start}, rec, context.Background())
		e.Open(context.Background(), slices.Values([]Entry{get(1, "/", 0)}))
		if !rec.at.Equal(start) || arrived.Load().Before(start) {
			t.Errorf("%s: started at %v and arrived at %v, want %v", row.says, rec.at, arrived.Load(), start)
		}
		if late := rec.records[0].LagUS; row.in < 0 && late < 1_000_000 {
			t.Errorf("%s: %d µs late", row.says, late)
		}
	}
}
