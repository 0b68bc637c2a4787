package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// site2 is a TLS server that notes what it was asked.
type site2 struct {
	mu    sync.Mutex
	conns map[string]bool
	seen  []string
}

func (s *site2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.conns == nil {
		s.conns = map[string]bool{}
	}
	s.conns[r.RemoteAddr] = true
	s.seen = append(s.seen, fmt.Sprintf("%s %s %s %s sni=%s",
		r.Proto, r.Method, r.RequestURI, r.Host, r.TLS.ServerName))
	s.mu.Unlock()
	_, _ = w.Write([]byte(strings.Repeat("x", 200_000)))
}

func TestHTTP2WhereTheLogAndTheServerHaveIt(t *testing.T) {
	rows := []struct {
		why        string
		server     bool
		log        wire.Protocol
		wantProto  string
		wantConns  int
		wantReused int
	}{
		{"both have it: one connection for all", true, wire.HTTP2, "HTTP/2.0", 1, 19},
		{"the server has it not", false, wire.HTTP2, "HTTP/1.1", 6, 14},
		{"the log has it not", true, wire.HTTP11, "HTTP/1.1", 6, 14},
	}
	for _, row := range rows {
		site := &site2{}
		url := tlsServer(t, httptest.NewUnstartedServer(site), row.server)
		var entries []Entry
		for i := range 20 {
			s := get(3, fmt.Sprintf("//odd/%%zz?%d", i), 0)
			s.Value.Target = strings.Replace(s.Value.Target, "%zz", "%7a", 1)
			s.Value.Proto, s.Value.Host, s.Value.UserAgent = row.log, "site.example", "UA"
			entries = append(entries, s)
		}
		rec, _ := replay(t, url, Options{}, entries...)
		reused := 0
		for _, r := range rec.records {
			if r.Error != record.None || r.Status != 200 || r.Bytes != 200_000 || r.Flags&record.TLS == 0 {
				t.Errorf("%s: %+v", row.why, r)
			}
			if (r.Flags&record.HTTP2 != 0) != (row.wantProto == "HTTP/2.0") {
				t.Errorf("%s: flags %b", row.why, r.Flags)
			}
			if r.Flags&record.Reused != 0 {
				reused++
			} else if r.ConnectUS == 0 || r.TLSUS == 0 {
				t.Errorf("%s: a new connection took %d µs and %d µs for TLS", row.why, r.ConnectUS, r.TLSUS)
			}
		}
		if len(rec.records) != 20 || len(site.conns) > row.wantConns || reused < row.wantReused {
			t.Errorf("%s: %d records, %d connections, %d reused", row.why, len(rec.records), len(site.conns), reused)
		}
		for _, seen := range site.seen {
			if !strings.HasPrefix(seen, row.wantProto+" GET //odd/%7a?") || !strings.HasSuffix(seen, " site.example sni=site.example") {
				t.Errorf("%s: %s", row.why, seen)
			}
		}
	}
}

func TestHTTP2TimeoutAndReset(t *testing.T) {
	release := make(chan struct{})
	url := tlsServer(t, httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/half":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}
	})), true)
	defer close(release)
	var entries []Entry
	for i, target := range []string{"/hang", "/reset", "/half", "/ok", "no-path"} {
		s := get(1, target, int64(i)*20)
		s.Value.Proto = wire.HTTP2
		entries = append(entries, s)
	}
	rec, _ := replay(t, url, Options{Timeout: 400 * time.Millisecond}, entries...)
	want := map[uint64]record.ErrorKind{1: record.Timeout, 21: record.H2Refused, 41: record.H2Refused, 61: record.None}
	for _, r := range rec.records {
		if r.Error != want[r.Line] {
			t.Errorf("line %d: %s, want %s", r.Line, r.Error, want[r.Line])
		}
	}
	if len(rec.records) != 4 || rec.skipped[wire.SkipUnsendable2] != 1 {
		t.Errorf("%d records, skipped %v", len(rec.records), rec.skipped)
	}
}

func TestConnectToKeepsTheName(t *testing.T) {
	server := serveScript(t, always(plainOK, false))
	to, err := target.New(context.Background(), "http://site.example", server.Addr().String(), false)
	if err != nil {
		t.Fatal(err)
	}
	rec := &memory{}
	New(to, noHeaders(t), Options{}, rec, context.Background()).Open(context.Background(), slices.Values([]Entry{get(1, "/", 0)}))
	if len(requestsOf(server)) != 1 || !strings.Contains(requestsOf(server)[0], "Host: site.example\r\n") {
		t.Errorf("%q", requestsOf(server))
	}
}
