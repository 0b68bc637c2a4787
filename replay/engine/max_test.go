package engine

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// drench sends requests as fast as they go.
func drench(t *testing.T, base string, opts Options, connections int, entries ...Entry) *memory {
	t.Helper()
	rec := &memory{}
	e := New(targetOf(t, base, true), noHeaders(t), opts, rec, context.Background())
	if outcome := e.Max(context.Background(), slices.Values(entries), connections, 0); outcome.Cause != nil {
		t.Error(outcome.Cause)
	}
	return rec
}

func TestMaxSendsAMegabyteOfTarget(t *testing.T) {
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.RequestURI[:4]))
	}))
	site.Config.MaxHeaderBytes = 4 << 20
	site.Start()
	defer site.Close()
	rec := drench(t, site.URL, Options{}, 2, get(1, "/aaa", 0), get(1, "/"+strings.Repeat("b", 3<<20), 1), get(1, "/ccc", 2), get(1, "/ddd", 3))
	for _, r := range rec.records {
		if r.Error != record.None || r.Status != 200 || r.Bytes != 4 {
			t.Errorf("line %d: %s, status %d, %d bytes", r.Line, r.Error, r.Status, r.Bytes)
		}
	}
	if len(rec.records) != 4 {
		t.Errorf("%d records of 4", len(rec.records))
	}
}

func TestMaxOverTLS(t *testing.T) {
	site := &site2{}
	url := tlsServer(t, httptest.NewUnstartedServer(site), true)
	var entries []Entry
	for i := range 40 {
		s := get(uint32(i), "/", int64(i))
		if i%2 == 0 {
			s.Value.Proto = wire.HTTP2
		}
		entries = append(entries, s)
	}
	rec := drench(t, url, Options{}, 4, entries...)
	for _, r := range rec.records {
		if r.Error != record.None || r.Flags&record.TLS == 0 {
			t.Errorf("line %d: %s, flags %b", r.Line, r.Error, r.Flags)
		}
	}
	if len(rec.records) != 40 {
		t.Errorf("%d records of 40", len(rec.records))
	}
}

func TestMaxRestsWhenNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	_ = listener.Close()
	var sent int
	endless := func(yield func(Entry) bool) {
		for yield(get(1, "/", 0)) {
			sent++
		}
	}
	rec := &memory{}
	e := New(targetOf(t, base, false), noHeaders(t), Options{}, rec, context.Background())
	e.Max(context.Background(), endless, 2, 500*time.Millisecond)
	if len(rec.records) == 0 || len(rec.records) > 20 {
		t.Errorf("%d attempts of two connections in half a second", len(rec.records))
	}
	for _, r := range rec.records {
		if r.Error != record.ConnectRefused {
			t.Errorf("error %s", r.Error)
		}
	}
}

func TestMaxIsInterrupted(t *testing.T) {
	release := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-release
		}
	}))
	defer site.Close()
	defer close(release)
	var entries []Entry
	for range 10 {
		entries = append(entries, get(1, "/hang", 0))
	}
	rec := &memory{}
	stop, cancel := context.WithCancel(context.Background())
	abort, leave := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	time.AfterFunc(200*time.Millisecond, leave)
	e := New(targetOf(t, site.URL, false), noHeaders(t), Options{Timeout: time.Minute}, rec, abort)
	outcome := e.Max(stop, slices.Values(entries), 3, 0)
	if len(rec.records) != 3 || outcome.Unsent != 7 {
		t.Errorf("%d records, %d unsent; want 3 and 7", len(rec.records), outcome.Unsent)
	}
	for _, r := range rec.records {
		if r.Error != record.Aborted {
			t.Errorf("cut off: %s", r.Error)
		}
	}
}
