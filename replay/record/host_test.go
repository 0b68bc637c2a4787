package record

import (
	"strings"
	"testing"
)

func TestTimeThatTheHypervisorTookIsNamed(t *testing.T) {
	at := func(all, stolen uint64) ProcessorTime { return ProcessorTime{all: all, stolen: stolen} }
	for _, c := range []struct {
		what       string
		start, end ProcessorTime
		want       string
	}{
		{"three ticks in a hundred", at(1000, 50), at(3000, 110), "gave 3 % of"},
		{"hardly anything", at(1000, 50), at(3000, 55), ""},
		{"a system that does not say", at(0, 0), at(0, 0), ""},
		{"not known at the start", at(0, 0), at(3000, 110), ""},
		{"no time went by", at(1000, 50), at(1000, 50), ""},
		{"a counter that ran backwards, as after a migration", at(1000, 50), at(3000, 10), ""},
	} {
		got := c.end.stolenSince(c.start)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestTheLineOfAllProcessorsIsRead(t *testing.T) {
	for _, c := range []struct {
		what, stat string
		want       ProcessorTime
	}{
		{"a kernel of today", "cpu  10 1 20 300 4 5 6 7 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n", ProcessorTime{353, 304, 7}},
		{"a kernel that knows no guests", "cpu 1 1 1 1 1 1 1 2\n", ProcessorTime{9, 2, 2}},
		{"too few columns", "cpu 1 2 3\n", ProcessorTime{}},
		{"no number", "cpu 1 1 1 x 1 1 1 2\n", ProcessorTime{}},
		{"something else", "intr 1 2 3 4 5 6 7 8 9\n", ProcessorTime{}},
		{"nothing", "", ProcessorTime{}},
	} {
		if got := parseProcessorTime([]byte(c.stat)); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestBusySince(t *testing.T) {
	for _, c := range []struct {
		what       string
		start, end ProcessorTime
		want       float64 // less than 0: not known
	}{
		{"three quarters", ProcessorTime{all: 400, idle: 300}, ProcessorTime{all: 500, idle: 325}, 0.75},
		{"not known at the start", ProcessorTime{}, ProcessorTime{all: 500, idle: 325}, -1},
		{"no time went by", ProcessorTime{all: 400, idle: 300}, ProcessorTime{all: 400, idle: 300}, -1},
		{"a counter that ran backwards", ProcessorTime{all: 400, idle: 300}, ProcessorTime{all: 500, idle: 200}, -1},
	} {
		got := c.end.BusySince(c.start)
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
