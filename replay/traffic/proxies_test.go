package traffic

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/route"
)

// entryOf is one line of a log: who asked for what, and how long it took.
type entryOf struct {
	address, agent, path string
	took                 float64 // seconds
	late                 int     // seconds that it stands too far down
	forwarded            string  // X-Forwarded-For; "": none
}

// logBy opens a log of n seconds with as many lines a second; with took the log has durations.
func logBy(t *testing.T, seconds, perSecond int, took bool, line func(i int) entryOf) *Logs {
	t.Helper()
	var text strings.Builder
	for i := range seconds * perSecond {
		e := line(i)
		fmt.Fprintf(&text, "%s - - [%s] \"GET %s HTTP/1.1\" 200 5 \"-\" %q", e.address,
			noon.Add(time.Duration(i/perSecond-e.late)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), e.path, e.agent)
		if took {
			fmt.Fprintf(&text, " %.3f", e.took)
		}
		if e.forwarded != "" {
			fmt.Fprintf(&text, " %q", e.forwarded)
		}
		text.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	format := "COMBINED"
	if took {
		format = `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T`
	}
	logs, err := Open(context.Background(), []string{path}, nil, Reading{Spec: accesslog.Spec{Log: format}})
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// TestAProxyIsNoClient: addresses that many visitors share are known by what they ask, and nobody else is taken for one.
func TestAProxyIsNoClient(t *testing.T) {
	proxy := func(i int) string { return fmt.Sprintf("192.0.2.%d", 1+i%2) }
	visitor := func(i int) string { return fmt.Sprintf("198.51.100.%d", i%200) }
	page := func(i int) string { return fmt.Sprintf("/p%d", i%20) }
	for _, row := range []struct {
		says               string
		seconds, perSecond int
		timed              bool
		line               func(i int) entryOf
		proxies            int
	}{
		{"visitors of their own", 60, 50, false, func(i int) entryOf { return entryOf{address: visitor(i), agent: browser, path: page(i)} }, 0},
		{"one agent behind two addresses, without rest", 60, 50, false,
			func(i int) entryOf { return entryOf{address: proxy(i), agent: browser, path: page(i)} }, 2},
		{"many agents behind one", 60, 20, false, func(i int) entryOf {
			return entryOf{address: "192.0.2.1", agent: fmt.Sprint("Agent/", i%20), path: page(i)}
		}, 1},
		{"more under way at once than a browser makes", 60, 8, true,
			func(i int) entryOf { return entryOf{address: "192.0.2.1", agent: browser, path: page(i), took: 1.5} }, 1},
		{"a crawler that asks one after the other, and has 90 % of the log", 60, 10, true, func(i int) entryOf {
			if i%10 == 0 {
				return entryOf{address: visitor(i), agent: browser, path: page(i), took: 0.2}
			}
			return entryOf{address: "192.0.2.1", agent: browser, path: page(i), took: 0.1}
		}, 0},
		{"the same, of which nobody knows how long it waited, but which asks for each page once", 60, 20, false, func(i int) entryOf {
			if i%10 == 0 {
				return entryOf{address: visitor(i), agent: browser, path: page(i)}
			}
			return entryOf{address: "192.0.2.1", agent: browser, path: fmt.Sprint("/p", i)}
		}, 0},
		{"the same, which says what it is", 60, 20, false, func(i int) entryOf {
			return entryOf{address: "192.0.2.1", agent: "ExampleBot/1.0", path: page(i)}
		}, 0},
		{"a slow crawler that asks for the same again and again", 100, 5, false, func(i int) entryOf {
			return entryOf{address: "192.0.2.1", agent: browser, path: page(i)}
		}, 0},
		{"few requests, whose visitors stand in another field", 60, 2, false, func(i int) entryOf {
			return entryOf{address: "192.0.2.1", agent: browser, path: page(i), forwarded: visitor(i)}
		}, 1},
		{"a visitor who opens a page of a hundred files now and then", 300, 4, false, func(i int) entryOf {
			if i/100%4 > 0 { // the page takes 25 s
				return entryOf{address: visitor(i), agent: browser, path: page(i)}
			}
			return entryOf{address: "192.0.2.1", agent: browser, path: page(i)}
		}, 0},
	} {
		logs := logBy(t, row.seconds, row.perSecond, row.timed, row.line)
		census, spread, err := logs.Census(context.Background(), Plan{Speed: 1, Methods: map[string]bool{"GET": true}}, Capacity{6, 10_000, 30 * time.Second})
		if err != nil || len(census.Proxies) != row.proxies || (census.Over > 0) != (row.proxies > 0) {
			t.Errorf("%s: %+v, %v, %v", row.says, census, spread, err)
		}
	}
}

// TestProxiesAreSpread: over as many clients as find a connection even if each request takes its time-out, the same ones
// whatever else is asked for, and no other client.
func TestProxiesAreSpread(t *testing.T) {
	logs := logBy(t, 60, 50, false, func(i int) entryOf {
		if i%10 == 0 {
			return entryOf{address: "198.51.100.7", agent: browser, path: "/"}
		}
		return entryOf{address: "192.0.2.1", agent: fmt.Sprint("Agent/", i%3), path: fmt.Sprint("/", i%20)}
	})
	plan := Plan{Speed: 1, Seed: 1, Loops: 1, Burst: true, Methods: map[string]bool{"GET": true}}
	capacity := Capacity{6, 10_000, 30 * time.Second}
	clients := func(plan Plan) (census Census, byLine map[uint64]uint32) {
		census, plan.Spread, _ = logs.Census(context.Background(), plan, capacity)
		byLine = map[uint64]uint32{}
		for one := range New(plan, logs, noCounter{}, route.New(nil)).Paced() {
			byLine[one.Value.Line] = one.Value.Client
		}
		return census, byLine
	}
	census, all := clients(plan)
	if census.Clients != 4 || len(census.Proxies) != 1 || census.Over != 3*75 { // 45 a second for 30 s, 6 at once
		t.Errorf("%+v", census)
	}
	requests := map[uint32]int{}
	for _, client := range all {
		requests[client]++
	}
	own := numberClient([]byte("198.51.100.7"), []byte(browser))
	if requests[own] != 300 || len(requests) != 1+census.Over {
		t.Errorf("%d clients of %d, the other one has %d of 300 requests", len(requests), 1+census.Over, requests[own])
	}
	delete(requests, own)
	if most := slices.Max(slices.Collect(maps.Values(requests))); most > 40 {
		t.Errorf("one client has %d of 2,700 requests", most)
	}
	if _, again := clients(plan); !maps.Equal(all, again) {
		t.Error("another time other clients")
	}
	late := logBy(t, 60, 45, false, func(i int) entryOf { // whose lines are out of order, by up to 40 s
		return entryOf{address: "192.0.2.1", agent: browser, path: fmt.Sprint("/", i%20), late: i % 2 * 40}
	})
	if census, _, err := late.Census(context.Background(), plan, Capacity{6, 10_000, 30 * time.Second}); err != nil || census.Over < 225 {
		t.Errorf("out of order: %+v, %v", census, err)
	}
	plan.Seed = 2
	if _, other := clients(plan); maps.Equal(all, other) {
		t.Error("another seed, the same clients")
	}
	plan.Seed, plan.Rate = 1, 10
	if census, _ = clients(plan); census.Over != 3*15 { // 9 of 10 a second for 30 s, 6 at once
		t.Errorf("--rate: %+v", census)
	}
	capacity.InAll = 20
	if census, _ = clients(plan); census.Over != 18 { // 6 for each of three
		t.Errorf("20 connections: %+v", census)
	}
	plan.Rate, plan.Limit = 0, 40
	if census, _ = clients(plan); census.Over != 0 || len(census.Proxies) != 0 {
		t.Errorf("what is not sent is counted: %+v", census)
	}
}
