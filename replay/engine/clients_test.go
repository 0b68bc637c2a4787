package engine_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"plimsoll/replay/engine"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
)

// Each client connects from one of the given addresses, whichever driver opens its connections.
func TestClientsConnectFromTheirAddresses(t *testing.T) {
	for _, d := range http1and2 {
		var mu sync.Mutex
		from := map[string][]string{} // by client
		site := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			address, _, _ := net.SplitHostPort(r.RemoteAddr)
			mu.Lock()
			defer mu.Unlock()
			from[r.URL.Path] = append(from[r.URL.Path], address)
		}))
		to := startSite(t, site, d)
		var err error
		if to.Sources, err = target.ParseSources([]string{"127.0.0.8", "127.0.1.0/30"}); err != nil {
			t.Fatal(err)
		}
		visit(t, to, d, 6, 2)
		site.Close()
		want := map[string]string{
			"/0": "127.0.0.8", "/1": "127.0.1.1", "/2": "127.0.1.2", "/3": "127.0.0.8", "/4": "127.0.1.1", "/5": "127.0.1.2",
		}
		for client, address := range want {
			if !slices.Equal(from[client], []string{address, address}) {
				t.Errorf("%s: client %s came from %v, want %s twice", d.name, client, from[client], address)
			}
		}
	}
}

// A client that connects again resumes its own TLS session, and nobody else's; or none does.
func TestClientsResumeTheirSessions(t *testing.T) {
	for _, d := range []driver{overTLS, overHTTP2} {
		for _, resume := range []bool{true, false} {
			var mu sync.Mutex
			resumed := map[string][]bool{} // by client
			site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "close")
				mu.Lock()
				defer mu.Unlock()
				resumed[r.URL.Path] = append(resumed[r.URL.Path], r.TLS.DidResume)
			}))
			to := startSite(t, site, d)
			to.Resume = resume
			visit(t, to, d, 2, 2)
			site.Close()
			for _, client := range []string{"/0", "/1"} {
				if got := resumed[client]; !slices.Equal(got, []bool{false, resume}) {
					t.Errorf("%s, resume %v: the connections of client %s were resumed: %v", d.name, resume, client, got)
				}
			}
		}
	}
}

func startSite(t *testing.T, site *httptest.Server, d driver) *target.Target {
	t.Helper()
	site.EnableHTTP2 = d.proto == wire.HTTP2
	if d.tls {
		site.StartTLS()
	} else {
		site.Start()
	}
	to, err := target.New(context.Background(), site.URL, "", true)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// visit sends some requests of each client, one after the other, with the client's number as the path.
func visit(t *testing.T, to *target.Target, d driver, clients, requests int) {
	t.Helper()
	var entries []engine.Entry
	for i := range clients * requests {
		client := uint32(i % clients)
		entries = append(entries, engine.Entry{AtNS: int64(i/clients) * (300 * time.Millisecond).Nanoseconds(), Value: &exchange.LoggedRequest{
			Request: wire.Request{Method: "GET", Target: fmt.Sprintf("/%d", client), Proto: d.proto}, Client: client,
		}})
	}
	none, _ := wire.ParseHeaders(nil)
	rec := &ride{}
	opts := engine.Options{Goroutines: d == goroutines, IdleTimeout: time.Minute}
	e := engine.New(to, none, opts, rec, context.Background())
	if out := e.Open(context.Background(), slices.Values(entries)); out.Cause != nil || out.Warn != nil {
		t.Fatalf("%s: %v", d.name, out)
	}
}
