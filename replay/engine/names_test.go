package engine

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/served"
)

// TestWhatServersSayOfThemselves: which cache answered, in the records; what the servers are, of all but errors.
func TestWhatServersSayOfThemselves(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "nginx/1.24.0")
		switch r.URL.Path {
		case "/hit":
			w.Header().Set("Cache-Status", `"an edge"; fwd=uri-miss, inner; hit`)
		case "/page":
			w.Header().Set("X-Cache", "MISS")
			w.Header().Set("X-Powered-By", "PHP/8.2")
		case "/lost":
			w.Header().Set("Server", "a proxy")
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	for _, row := range []struct {
		says          string
		secure, http2 bool
		proto         wire.Protocol
		goroutines    bool
	}{
		{says: "an event loop"}, {says: "goroutines", goroutines: true}, {says: "TLS", secure: true},
		{says: "HTTP/2", secure: true, http2: true, proto: wire.HTTP2},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
		var url string
		if row.secure {
			url = tlsServer(t, server, row.http2)
		} else {
			server.Start()
			t.Cleanup(server.Close)
			url = server.URL
		}
		var entries []Entry
		for i, path := range []string{"/hit", "/page", "/lost", "/plain"} {
			entry := get(1, path, int64(i))
			entry.Value.Proto = row.proto
			entries = append(entries, entry)
		}
		var software wire.Software
		rec, _ := replay(t, url, Options{Software: &software, Goroutines: row.goroutines}, entries...)
		got := map[uint64]served.By{}
		for _, r := range rec.records {
			got[r.Line] = r.Served
		}
		want := map[uint64]served.By{1: served.Hit, 2: served.Miss, 3: served.Unknown, 4: served.Unknown}
		if !maps.Equal(got, want) {
			t.Errorf("%s: served by %v, want %v", row.says, got, want)
		}
		if !slices.Equal(software.Server(), []string{"nginx/1.24.0"}) || !slices.Equal(software.PoweredBy(), []string{"PHP/8.2"}) {
			t.Errorf("%s: %q, %q", row.says, software.Server(), software.PoweredBy())
		}
	}
}
