package k6

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
)

func tagged(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestRoutesAreFewNamesAndNeverAnAddress(t *testing.T) {
	for _, c := range []struct {
		says string
		tags func(string) string
		want string
	}{
		{"a step goes first", tagged("step", "log in", "name", "x"), "log in"},
		{"then the name that the script gave", tagged("name", "basket", "group", "::shop"), "basket"},
		{"then the innermost group", tagged("name", "http://h/p?token=1", "group", "::shop::pay"), "pay"},
		{"then the kind of the address", tagged("name", "https://h/wp-login.php?token=1"), "login"},
		{"which may be in url", tagged("url", "http://h/a.png"), "image"},
		{"a long name is cut", tagged("name", fmt.Sprintf("%0100d", 7)), fmt.Sprintf("%047d…", 0)},
		{"nothing at all is a page", tagged(), "page"},
	} {
		r := newRoutes()
		if got := r.all()[:0]; len(got) != 0 {
			t.Fatal("routes before the first")
		}
		if got := r.number(c.tags); r.all()[got] != c.want {
			t.Errorf("%s: %q, want %q", c.says, r.all()[got], c.want)
		}
	}
}

func TestAfterSixtyFourRoutesAllIsOther(t *testing.T) {
	r := newRoutes()
	for i := range 1000 {
		r.number(tagged("name", fmt.Sprintf("n%d", i)))
	}
	names := r.all()
	if len(names) != 65 || names[64] != "other" || len(r.numbers) != 65 {
		t.Errorf("%d names, the last %q, %d remembered", len(names), names[len(names)-1], len(r.numbers))
	}
	if r.number(tagged("name", "n5")) != 5 || r.number(tagged("name", "n900")) != 64 {
		t.Error("numbers move")
	}
}

// TestErrorKinds: the same table is read by tests/unit/exchange/test_k6.py.
func TestErrorKinds(t *testing.T) {
	text, err := os.ReadFile("../../tests/fixtures/k6-errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Says, Text, Kind string
		Code, Status     int
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 15 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, row := range rows {
		if got := errorKind(row.Code, row.Text, row.Status); got.String() != row.Kind {
			t.Errorf("%s: %v, want %s", row.Says, got, row.Kind)
		}
	}
}

func TestARequestAsK6KnowsIt(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	registry := metrics.NewRegistry()
	trail := &httpext.Trail{
		EndTime: begun.Add(3 * time.Second), Blocked: 30 * time.Millisecond, Connecting: 10 * time.Millisecond, TLSHandshaking: 15 * time.Millisecond,
		Duration: 100 * time.Millisecond, Sending: time.Millisecond, Waiting: 59 * time.Millisecond, Receiving: 40 * time.Millisecond,
		Tags:     registry.RootTagSet().WithTagsFromMap(map[string]string{"status": "404", "proto": "HTTP/2.0", "tls_version": "tls1.3", "name": "n"}),
		Metadata: map[string]string{"vu": "7", "iter": "0"},
	}
	got := recordOf(trail, begun, newRoutes())
	want := record.Record{
		DueNS: 2_870_000_000, ConnectUS: 10_000, TLSUS: 15_000, TTFBUS: 90_000, TotalUS: 130_000, LoggedBytes: -1, Line: 1, Client: 7,
		Status: 404, Flags: record.HTTP2 | record.TLS,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	trail.EndTime = begun // it began before the clock did
	if got := recordOf(trail, begun, newRoutes()); got.DueNS != 0 {
		t.Errorf("due %d", got.DueNS)
	}
}

func TestOnlyTrendsOfTimesAreMeasures(t *testing.T) {
	registry := metrics.NewRegistry()
	sample := func(name string, kind metrics.MetricType, unit metrics.ValueType) metrics.Sample {
		metric := registry.MustNewMetric(name, kind, unit)
		return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: registry.RootTagSet()}, Value: 5}
	}
	m := newTrends()
	for _, c := range []struct {
		says   string
		sample metrics.Sample
		want   bool
	}{
		{"a script's own trend of times", sample("basket", metrics.Trend, metrics.Time), true},
		{"not one of numbers", sample("price", metrics.Trend, metrics.Default), false},
		{"not a counter", sample("sold", metrics.Counter, metrics.Default), false},
		{"not what the records have", sample("http_req_duration", metrics.Trend, metrics.Time), false},
	} {
		if _, ok := m.event(c.sample, time.Second); ok != c.want {
			t.Errorf("%s: %v", c.says, ok)
		}
	}
	many := sample("many", metrics.Trend, metrics.Time)
	kept := 0
	for range 5000 {
		if _, ok := m.event(many, 0); ok {
			kept++
		}
	}
	if kept != mostValues {
		t.Errorf("%d values are kept", kept)
	}
}
