package live

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"plimsoll/replay/record"
)

func gathered(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

func metricsOf(names ...string) *Metrics {
	return New("results/run", "http://127.0.0.1", 30*time.Second, func() []string { return names }, new(atomic.Int64))
}

func TestFiguresAreThoseOfTheRecords(t *testing.T) {
	m := metricsOf("page", "image")
	m.Observe([]record.Record{
		{LagUS: 100, TotalUS: 1900, Status: 200, Bytes: 10},
		{LagUS: 100, TotalUS: 900, Status: 200, Bytes: 10, Route: 1, Flags: record.Reused},
		{LagUS: 5000, TotalUS: 1000, Status: 503, Flags: record.Reused | record.Queued},
		{TotalUS: 1000, Error: record.Reset, Bytes: -1},
		{TotalUS: 9_000_000, Status: 200, Flags: record.Warmup},
	})
	all := gathered(t, m)
	response := all["plimsoll_response_seconds"].GetMetric()[0].GetHistogram()
	if response.GetSampleCount() != 4 || response.GetSampleSum() != 0.002+0.001+30+30 {
		t.Errorf("failures count at their time-out: %d, %v", response.GetSampleCount(), response.GetSampleSum())
	}
	if len(response.GetBucket()) != len(boundsS) || len(response.GetPositiveSpan()) == 0 {
		t.Errorf("it is classic and native: %d buckets, %d spans", len(response.GetBucket()), len(response.GetPositiveSpan()))
	}
	if lag := all["plimsoll_lag_seconds"].GetMetric()[0].GetHistogram(); lag.GetSampleCount() != 3 {
		t.Errorf("what waited is no lag: %d", lag.GetSampleCount())
	}
	for name, want := range map[string]float64{
		"plimsoll_failed_requests_total": 2, "plimsoll_warmup_requests_total": 1, "plimsoll_received_bytes_total": 20,
		"plimsoll_connections_opened_total": 2,
	} {
		if got := all[name].GetMetric()[0].GetCounter().GetValue(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	got := map[string]float64{}
	for _, one := range all["plimsoll_requests_total"].GetMetric() {
		got[one.GetLabel()[0].GetValue()+" "+one.GetLabel()[1].GetValue()] = one.GetCounter().GetValue()
	}
	want := map[string]float64{"page 200": 1, "image 200": 1, "page 503": 1, "page " + record.Reset.String(): 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestASiteCannotMakeLabelsWithoutEnd(t *testing.T) {
	m := metricsOf("a")
	for status := range 600 {
		m.Observe([]record.Record{{Status: uint16(status + 100)}})
	}
	if n := len(gathered(t, m)["plimsoll_requests_total"].GetMetric()); n != mostStatuses+1 {
		t.Errorf("%d series", n)
	}
}

func TestHostileNamesStayInTheirLabels(t *testing.T) {
	for _, row := range []struct{ why, name, want string }{
		{"it ends the label", `a"} 1` + "\nevil_total 1", `a"} 1?evil_total 1`},
		{"it is no UTF-8", "a\xff\xfe", "a?"},
		{"it moves a cursor and turns text round", "a\x1b[2Jb\u202ec", "a?[2Jb?c"},
		{"it is long", strings.Repeat("ä", 200), strings.Repeat("ä", 60)},
	} {
		m := metricsOf(row.name)
		m.Observe([]record.Record{{Status: 200}})
		got := gathered(t, m)["plimsoll_requests_total"].GetMetric()[0].GetLabel()[0].GetValue()
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.why, got, row.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, row := range []struct {
		why, address string
		remote       bool
		want         string
	}{
		{"loopback", "127.0.0.1:9464", false, ""},
		{"any of it", "127.8.0.1:9464", false, ""},
		{"IPv6", "[::1]:9464", false, ""},
		{"by name", "localhost:9464", false, ""},
		{"all addresses", ":9464", false, `":9464" can be reached by other machines: give one of this machine only, such as 127.0.0.1:9464`},
		{"all of them, as was asked", ":9464", true, ""},
		{"another address", "10.0.0.5:9464", false, "can be reached by other machines"},
		{"no port", "127.0.0.1", false, "is not an address: give HOST:PORT"},
		{"an empty port", "127.0.0.1:", false, "is not an address"},
		{"a port that is none", "127.0.0.1:99999", false, `"99999" is not a port`},
		{"port 0, which nobody knows", "127.0.0.1:0", false, `"0" is not a port`},
	} {
		err := CheckAddress(row.address, row.remote)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.why, err, row.want)
		}
	}
}

// TestScrapes: what Prometheus asks for, in text and in protocol buffers, which alone have native histograms; and what it
// does not ask for.
func TestScrapes(t *testing.T) {
	listener, err := Listen("127.0.0.1:0") // any
	if err != nil {
		t.Fatal(err)
	}
	m := metricsOf("page")
	m.Observe([]record.Record{{TotalUS: 1000, Status: 200}})
	stop := m.Serve(listener)
	defer stop()
	address := listener.Addr().String()
	if _, err := Listen(address); err == nil || !strings.Contains(err.Error(), "is in use by another program: stop that one, or choose another port") {
		t.Errorf("a port that is taken: %v", err)
	}
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	for _, row := range []struct {
		why, method, path, host, accept string
		status                          int
		has                             string
	}{
		{"text", "GET", Path, address, "text/plain", 200, "plimsoll_requests_total{route=\"page\",status=\"200\"} 1"},
		{"classic buckets", "GET", Path, address, "text/plain", 200, "plimsoll_response_seconds_bucket{le=\"0.001\"} 1"},
		{"protocol buffers", "GET", Path, address, protobuf, 200, "plimsoll_response_seconds"},
		{"IPv6 by its number", "GET", Path, "[::1]:9464", "", 200, "plimsoll_run_info"},
		{"a page of another host", "GET", Path, "evil.example:9464", "", 403, "by its number"},
		{"another path", "GET", "/", address, "", 404, ""},
		{"a change", "POST", Path, address, "", 405, ""},
	} {
		request, err := http.NewRequest(row.method, "http://"+address+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = row.host
		request.Header.Set("Accept", row.accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != row.status || !bytes.Contains(body, []byte(row.has)) {
			t.Errorf("%s: %d %s", row.why, response.StatusCode, body)
		}
	}
	stop()
	if _, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		t.Error("it still listens after its end")
	}
}

// BenchmarkObserve is what a record costs the goroutine that writes them.
func BenchmarkObserve(b *testing.B) {
	m := metricsOf("page")
	block := make([]record.Record, 1024)
	for i := range block {
		block[i] = record.Record{LagUS: uint32(i), TotalUS: uint32(i * 37), Status: 200}
	}
	for b.Loop() {
		m.Observe(block)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(block)), "ns/record")
}
