package record

import (
	"strings"
	"testing"
)

func TestTimeThatTheHypervisorTookIsNamed(t *testing.T) {
	at := func(all, stolen uint64) processorTime { return processorTime{all, stolen} }
	for _, c := range []struct {
		what       string
		start, end processorTime
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
		want       processorTime
	}{
		{"a kernel of today", "cpu  10 1 20 300 4 5 6 7 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n", processorTime{353, 7}},
		{"a kernel that knows no guests", "cpu 1 1 1 1 1 1 1 2\n", processorTime{9, 2}},
		{"too few columns", "cpu 1 2 3\n", processorTime{}},
		{"no number", "cpu 1 1 1 x 1 1 1 2\n", processorTime{}},
		{"something else", "intr 1 2 3 4 5 6 7 8 9\n", processorTime{}},
		{"nothing", "", processorTime{}},
	} {
		if got := parseProcessorTime([]byte(c.stat)); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
