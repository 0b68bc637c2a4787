package k6

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
)

var sampled = []struct {
	says   string
	record record.Record
	want   map[string]float64
}{
	{
		"response time counts from due, k6's own duration leaves out the connection",
		record.Record{DueNS: 1e9, LagUS: 2000, ConnectUS: 1000, TLSUS: 3000, TTFBUS: 9000, TotalUS: 10_000, Status: 200, LoggedStatus: 200},
		map[string]float64{"http_reqs": 1, "http_req_duration": 6, "http_req_failed": 0, "plimsoll_response": 12, "plimsoll_lag": 2},
	},
	{
		"a request that queued has no lag of the generator",
		record.Record{LagUS: 5000, TTFBUS: 1, TotalUS: 1000, Status: 200, Flags: record.Queued},
		map[string]float64{"http_reqs": 1, "http_req_duration": 1, "http_req_failed": 0, "plimsoll_response": 6, "plimsoll_queued": 1},
	},
	{
		"an error has no first byte",
		record.Record{TotalUS: 1000, Error: record.ConnectRefused},
		map[string]float64{"http_reqs": 1, "http_req_duration": 1, "http_req_failed": 1, "plimsoll_response": 1, "plimsoll_lag": 0, "plimsoll_errors": 1},
	},
	{
		"another status than the log's",
		record.Record{TTFBUS: 1000, TotalUS: 1000, Status: 500, LoggedStatus: 200},
		map[string]float64{"http_reqs": 1, "http_req_duration": 1, "http_req_failed": 1, "plimsoll_response": 1, "plimsoll_lag": 0, "plimsoll_status_mismatch": 1},
	},
	{"the warm-up is in no figure", record.Record{TotalUS: 1000, Flags: record.Warmup}, map[string]float64{}},
}

func TestSamplesOfARequest(t *testing.T) {
	registry := metrics.NewRegistry()
	own, err := newReplayMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	s := &sampler{
		own: own, builtin: metrics.RegisterBuiltinMetrics(registry), tags: registry.RootTagSet(), started: time.Unix(100, 0),
		route: func(uint16) string { return "page" }, known: map[series]*seriesCounts{},
	}
	values := func(r record.Record) map[string]float64 {
		out := map[string]float64{}
		for _, one := range s.samples([]record.Record{r}) {
			out[one.Metric.Name] = one.Value
			if name, _ := one.Tags.Get("name"); name != "page" {
				t.Errorf("route %q", name)
			}
		}
		return out
	}
	for _, c := range sampled {
		got := values(c.record)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", c.says, got)
		}
		for name, want := range c.want {
			if value, ok := got[name]; !ok || value != want {
				t.Errorf("%s: %s is %v, want %v", c.says, name, value, want)
			}
		}
	}
	several := s.samples([]record.Record{{TotalUS: 1, Status: 200}, {TotalUS: 2, Status: 200}, {TotalUS: 3, Status: 404}})
	counts := map[float64]int{}
	for _, one := range several {
		if one.Metric.Name == metrics.HTTPReqsName {
			counts[one.Value]++
		}
	}
	if counts[1] != 1 || counts[2] != 1 || len(counts) != 2 {
		t.Errorf("three requests of two kinds are counted as %v", counts)
	}
}

func TestEveryMetricAndOptionOfOursIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/k6.md")
	if err != nil {
		t.Fatal(err)
	}
	registry := metrics.NewRegistry()
	if _, err := newReplayMetrics(registry); err != nil {
		t.Fatal(err)
	}
	names := append([]string{"startAt", "PLIMSOLL_SCENARIO", "PLIMSOLL_BACKEND", "PLIMSOLL_REPEAT", "PLIMSOLL_TARGET"}, reservedFlags...)
	for _, metric := range registry.All() {
		names = append(names, metric.Name)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not in docs/k6.md", name)
		}
	}
}
