package schedule

import (
	"slices"
	"testing"
)

func TestVisits(t *testing.T) {
	type request struct {
		client uint64
		at     int64
	}
	rows := []struct {
		why    string
		in     []request
		window int
		want   [][]int64 // instants of each visit
	}{
		{"clients are told apart", []request{{1, 0}, {2, 1}, {1, 2}}, 10, [][]int64{{0, 2}, {1}}},
		{"a long pause begins a new visit", []request{{1, 0}, {1, 5}, {1, 16}}, 10, [][]int64{{0, 5}, {16}}},
		{"a pause as long as allowed does not", []request{{1, 0}, {1, 10}}, 10, [][]int64{{0, 10}}},
		{"a full window cuts visits, and loses nothing", []request{{1, 0}, {2, 1}, {1, 2}, {2, 3}}, 2, [][]int64{{0}, {1}, {2}, {3}}},
		{"an empty log has none", nil, 2, nil},
	}
	for _, row := range rows {
		in := func(yield func(Entry[request]) bool) {
			for _, r := range row.in {
				if !yield(Entry[request]{AtNS: r.at, Value: r}) {
					return
				}
			}
		}
		var got [][]int64
		for visit := range Visits(in, func(r request) uint64 { return r.client }, 10, row.window) {
			var instants []int64
			for _, e := range visit {
				instants = append(instants, e.AtNS)
			}
			got = append(got, instants)
		}
		if !slices.EqualFunc(got, row.want, func(a, b []int64) bool { return slices.Equal(a, b) }) {
			t.Errorf("%s: %v, want %v", row.why, got, row.want)
		}
	}
}
