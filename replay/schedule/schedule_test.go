package schedule

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
)

const second = int64(1e9)

func at(instants ...int64) Seq[int] {
	return func(yield func(Entry[int]) bool) {
		for i, t := range instants {
			if !yield(Entry[int]{AtNS: t, DurationNS: -1, Value: i}) {
				return
			}
		}
	}
}

func instants(seq Seq[int]) []int64 {
	var out []int64
	for e := range seq {
		out = append(out, e.AtNS)
	}
	return out
}

func values(seq Seq[int]) []int {
	var out []int
	for e := range seq {
		out = append(out, e.Value)
	}
	return out
}

func TestSort(t *testing.T) {
	rows := []struct {
		why    string
		window int
		in     []int64
		want   []int
	}{
		{"an ordered log stays as it is", 2, []int64{1, 2, 3}, []int{0, 1, 2}},
		{"requests of the same instant keep the order of the log", 5, []int64{1, 1, 1, 0}, []int{3, 0, 1, 2}},
		{"a step back within the window is put right", 2, []int64{5, 6, 4, 7}, []int{2, 0, 1, 3}},
		{"a step back past the window leaves late, but is not lost", 1, []int64{5, 6, 7, 1}, []int{0, 1, 3, 2}},
		{"no window is no sorting", 0, []int64{2, 1}, []int{0, 1}},
	}
	for _, row := range rows {
		if got := values(Sort(at(row.in...), row.window)); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.why, got, row.want)
		}
	}
}

func TestSortSortsWhateverFitsTheWindow(t *testing.T) {
	check := func(in []int64) bool {
		return slices.IsSorted(instants(Sort(at(in...), len(in))))
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestSpreadKeepsOrderAndSecond(t *testing.T) {
	check := func(counts []uint8, seed uint64) bool {
		var in []int64
		for s, n := range counts {
			for range n % 40 {
				in = append(in, int64(s)*second)
			}
		}
		var notes Notes
		last := int64(math.MinInt64)
		next := 0
		for e := range Spread(at(in...), second, seed, &notes) {
			if e.Value != next || e.AtNS < last || e.AtNS/second != in[e.Value]/second {
				return false
			}
			last = e.AtNS
			next++
		}
		return next == len(in) && notes.Spread == uint64(len(in))
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestSpreadIsUniformAndSeeded(t *testing.T) {
	const n = 10000
	in := make([]int64, n)
	var notes Notes
	got := instants(Spread(at(in...), second, 7, &notes))
	// The i-th of n uniform order statistics has mean i/(n+1) and a standard deviation of at most 0.5/√n.
	for i, v := range got {
		if off := math.Abs(float64(v)/1e9 - float64(i+1)/(n+1)); off > 5*0.5/math.Sqrt(n) {
			t.Fatalf("order statistic %d is %.4f s off", i, off)
		}
	}
	if !slices.Equal(got, instants(Spread(at(in...), second, 7, &notes))) {
		t.Error("the same seed gave other instants")
	}
	if slices.Equal(got, instants(Spread(at(in...), second, 8, &notes))) {
		t.Error("another seed gave the same instants")
	}
}

func TestSpreadBoundsItsMemory(t *testing.T) {
	in := make([]int64, spreadBatch+10)
	var notes Notes
	if got := len(instants(Spread(at(in...), second, 1, &notes))); got != len(in) {
		t.Errorf("%d entries of %d", got, len(in))
	}
}

func TestStarts(t *testing.T) {
	in := func(yield func(Entry[int]) bool) {
		_ = yield(Entry[int]{AtNS: 10 * second, DurationNS: 3 * second}) &&
			yield(Entry[int]{AtNS: 11 * second, DurationNS: -1}) &&
			yield(Entry[int]{AtNS: 12 * second, DurationNS: 7200 * second}) &&
			yield(Entry[int]{AtNS: 13 * second, DurationNS: math.MaxInt64}) &&
			yield(Entry[int]{AtNS: second, DurationNS: second})
	}
	want := []int64{7 * second, 11 * second, 2 * second, 2 * second, second}
	if got := instants(Starts[int](in, 2*second)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPace(t *testing.T) {
	rows := []struct {
		why    string
		pacing Pacing
		in     []int64
		want   []int64
	}{
		{"the first request is due at once", Pacing{Speed: 1, Loops: 1}, []int64{100, 103}, []int64{0, 3}},
		{"twice the speed is half the distance", Pacing{Speed: 2, Loops: 1}, []int64{0, 10, 30}, []int64{0, 5, 15}},
		{"half the speed is twice the distance", Pacing{Speed: 0.5, Loops: 1}, []int64{0, 10}, []int64{0, 20}},
		{"a rate takes no heed of the log", Pacing{Speed: 1, Rate: 500, Loops: 1}, []int64{9, 9, 1}, []int64{0, 2e6, 4e6}},
		{"a stray is due at once, and moves nobody else", Pacing{Speed: 1, Loops: 1}, []int64{0, 10, 4, 20}, []int64{0, 10, 10, 20}},
		{"a longer pause than that is shortened to it", Pacing{Speed: 1, Loops: 1, PauseNS: 10}, []int64{0, 5, 105, 110}, []int64{0, 5, 15, 20}},
		{"each of them", Pacing{Speed: 1, Loops: 1, PauseNS: 10}, []int64{0, 100, 200, 205}, []int64{0, 10, 20, 25}},
		{"a pause of that length is kept", Pacing{Speed: 1, Loops: 1, PauseNS: 10}, []int64{0, 10, 20}, []int64{0, 10, 20}},
		{"a pause is of the log's time, whatever the speed", Pacing{Speed: 10, Loops: 1, PauseNS: 100}, []int64{0, 1000, 1010}, []int64{0, 10, 11}},
		{"in each loop anew", Pacing{Speed: 1, Loops: 2, PauseNS: 10}, []int64{0, 100, 110}, []int64{0, 10, 20, 30, 40, 50}},
		{"a stray behind is no begin of a pause", Pacing{Speed: 1, Loops: 1, PauseNS: 10}, []int64{0, 100, 4, 105}, []int64{0, 10, 10, 15}},
		{"nothing is due at the limit or after it", Pacing{Speed: 1, Loops: 1, LimitNS: 10}, []int64{0, 9, 10, 11}, []int64{0, 9}},
		{"a second loop follows after the mean distance", Pacing{Speed: 1, Loops: 2}, []int64{0, 10, 20}, []int64{0, 10, 20, 30, 40, 50}},
		{"a loop of one request comes each second", Pacing{Speed: 1, Loops: 3}, []int64{5}, []int64{0, second, 2 * second}},
		{"loops without number end at the limit", Pacing{Speed: 1, LimitNS: 45}, []int64{0, 10, 20}, []int64{0, 10, 20, 30, 40}},
		{"what lies centuries ahead is never due", Pacing{Speed: 1e-4, Loops: 2}, []int64{0, 1 << 62}, []int64{0, farNS, farNS, farNS}},
		{"nor is what a rate has there", Pacing{Speed: 1, Rate: 1e-10, Loops: 1}, []int64{0, 1}, []int64{0, farNS}},
		{"nor what lies centuries back", Pacing{Speed: 1e-4, Loops: 1}, []int64{1 << 62, 0}, []int64{0, 0}},
		{"an empty log ends, however many loops", Pacing{Speed: 1, LimitNS: 45}, nil, nil},
	}
	for _, row := range rows {
		var notes Notes
		got := instants(Pace(func() Seq[int] { return at(row.in...) }, row.pacing, &notes))
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.why, got, row.want)
		}
	}
}

func TestPaceDoesNotDrift(t *testing.T) {
	const n = 1_000_000
	in := func(yield func(Entry[int]) bool) {
		for i := range int64(n) {
			if !yield(Entry[int]{AtNS: i * 333}) {
				return
			}
		}
	}
	var notes Notes
	var last int64
	for e := range Pace(func() Seq[int] { return in }, Pacing{Speed: 3, Loops: 1}, &notes) {
		last = e.AtNS
	}
	if want := int64((n - 1) * 111); last != want {
		t.Errorf("the last of a million is due at %d ns, want %d", last, want)
	}
}

// The hour at the end of summer time stands twice in a log without offsets. Its second half must keep its pace, not be
// sent in one burst.
func TestPaceFollowsAClockSetBack(t *testing.T) {
	var in []int64
	for s := range int64(7200) {
		in = append(in, s*second)
	}
	for s := range int64(7200) {
		in = append(in, (3600+s)*second)
	}
	var notes Notes
	got := instants(Pace(func() Seq[int] { return Sort(at(in...), 100) }, Pacing{Speed: 1, Loops: 1}, &notes))
	if span := got[len(got)-1] / second; span < 4*3600-200 || span > 4*3600 {
		t.Errorf("two hours and two more of requests span %d s", span)
	}
	if notes.Steps != 1 {
		t.Errorf("%d steps back, want 1", notes.Steps)
	}
	most, in1s, i := 0, 0, 0
	for j := range got {
		in1s++
		for got[j]-got[i] >= second {
			i++
			in1s--
		}
		most = max(most, in1s)
	}
	if most > 2*stepAfter {
		t.Errorf("%d requests in one second of a log with two at most", most)
	}
}

func TestPaceNeverDecreases(t *testing.T) {
	check := func(in []int64, seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range in {
			in[i] %= 1 << 50
		}
		var notes Notes
		got := instants(Pace(func() Seq[int] { return at(in...) }, Pacing{Speed: 0.1 + 10*r.Float64(), Loops: 1}, &notes))
		return len(got) == len(in) && slices.IsSorted(got)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestBetweenAndLimit(t *testing.T) {
	if got := instants(Between(at(1, 2, 3, 4), 2, 4)); !slices.Equal(got, []int64{2, 3}) {
		t.Error("between 2 and 4:", got)
	}
	if got := instants(Limit(at(1, 2, 3), 2)); !slices.Equal(got, []int64{1, 2}) {
		t.Error("two of three:", got)
	}
	if got := instants(Limit(at(1), 0)); got != nil {
		t.Error("none:", got)
	}
}

func TestStagesStopWhenAsked(t *testing.T) {
	var notes Notes
	stages := map[string]Seq[int]{
		"sort":    Sort(at(3, 2, 1, 4), 1),
		"spread":  Spread(at(1, 1, 2, 3), second, 1, &notes),
		"starts":  Starts(at(1, 2, 3), 0),
		"between": Between(at(1, 2, 3), 0, 9),
		"pace":    Pace(func() Seq[int] { return at(1, 2, 3) }, Pacing{Speed: 1}, &notes),
	}
	for name, seq := range stages {
		next, stop := iter.Pull(seq)
		if _, ok := next(); !ok {
			t.Errorf("%s gave nothing", name)
		}
		stop()
	}
}

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
		{"each client has its own visits", []request{{1, 0}, {2, 1}, {1, 2}}, 10, [][]int64{{0, 2}, {1}}},
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
