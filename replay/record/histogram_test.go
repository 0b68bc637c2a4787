package record

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// shapes of samples that have broken percentiles before: ties, gaps, one value, the edges of pages.
var shapes = []struct {
	why  string
	draw func(*rand.Rand) uint64
}{
	{"short times with many ties", func(r *rand.Rand) uint64 { return r.Uint64N(50) }},
	{"times around the edge of a page", func(r *rand.Rand) uint64 { return pageSize - 2 + r.Uint64N(4) }},
	{"a long tail", func(r *rand.Rand) uint64 { return uint64(math.Exp(r.NormFloat64()*2 + 6)) }},
	{"two humps far apart", func(r *rand.Rand) uint64 { return r.Uint64N(100) + r.Uint64N(2)*30_000_000 }},
	{"one value only", func(*rand.Rand) uint64 { return 4711 }},
	{"a whole minute", func(r *rand.Rand) uint64 { return r.Uint64N(60_000_000) }},
}

func TestPercentilesAreThoseOfASortedSample(t *testing.T) {
	for _, shape := range shapes {
		for _, n := range []int{1, 2, 9, 10, 99, 100, 999, 1000, 9_999, 10_000, 30_000} {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			var c histogram
			sample := make([]uint64, n)
			for i := range sample {
				sample[i] = shape.draw(r)
				c.add(sample[i])
			}
			slices.Sort(sample)
			for _, q := range []quantile{p50, p90, p95, p99, p999, p9999} {
				checkPercentile(t, shape.why, &c, sample, q)
			}
			s := c.statistics()
			if *s.Min != float64(sample[0])/1000 || *s.Max != float64(sample[n-1])/1000 {
				t.Errorf("%s, n=%d: min %v, max %v", shape.why, n, *s.Min, *s.Max)
			}
			checkMoments(t, shape.why, s, sample)
		}
	}
}

func checkPercentile(t *testing.T, why string, c *histogram, sorted []uint64, q quantile) {
	t.Helper()
	n := len(sorted)
	got := c.percentileMS(q)
	// In whole numbers, so that the test does not share the rounding of a product of floats.
	if enough := n*(quantileUnit-int(q)) >= quantileUnit; !enough {
		if got != nil {
			t.Errorf("%s, n=%d: p%v is %v, want none of so few", why, n, float64(q)/100, *got)
		}
		return
	}
	rank := (n*int(q) + quantileUnit - 1) / quantileUnit
	want := float64(sorted[rank-1]) / 1000
	if got == nil || *got != want {
		t.Errorf("%s, n=%d: p%v is %v, want %v", why, n, float64(q)/100, got, want)
	}
}

func checkMoments(t *testing.T, why string, s Statistics, sample []uint64) {
	t.Helper()
	var sum, squares float64
	for _, v := range sample {
		sum += float64(v) / 1000
	}
	mean := sum / float64(len(sample))
	for _, v := range sample {
		d := float64(v)/1000 - mean
		squares += d * d
	}
	stddev := math.Sqrt(squares / float64(len(sample)))
	if !near(*s.Mean, mean) || !near(*s.Stddev, stddev) {
		t.Errorf("%s, n=%d: mean %v, stddev %v, want %v, %v", why, len(sample), *s.Mean, *s.Stddev, mean, stddev)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestNothingHasNoStatistics(t *testing.T) {
	var c histogram
	if s := c.statistics(); !reflect.DeepEqual(s, Statistics{}) {
		t.Errorf("statistics of nothing are %+v, want nulls only", s)
	}
}

func TestRanksDoNotOverflow(t *testing.T) {
	if got, want := p9999.rank(1<<62), uint64(1<<62)-1<<62/quantileUnit; got != want {
		t.Errorf("rank of p99.99 among 2^62 is %d, want %d", got, want)
	}
}

func TestCountersOutgrowTheirByte(t *testing.T) {
	var c histogram
	for range 100_000 {
		c.add(3)
	}
	c.add(4)
	if c.at(100_000) != 3 || c.at(100_001) != 4 {
		t.Errorf("rank 100000 is %d and 100001 is %d, want 3 and 4", c.at(100_000), c.at(100_001))
	}
}

func TestLongTimesKeepTheirExactSums(t *testing.T) {
	var m moments
	for range 3 {
		m.add(2 * math.MaxUint32) // its square takes 66 bits
	}
	if m.mean() != 2*math.MaxUint32 || m.stddev() != 0 {
		t.Errorf("mean %v, stddev %v of three equal times", m.mean(), m.stddev())
	}
}

func TestMergedMomentsAreThoseOfTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var whole, left, right moments
	for i := range 1000 {
		v := r.Uint64N(1 << 33)
		whole.add(v)
		if i%3 == 0 {
			left.add(v)
		} else {
			right.add(v)
		}
	}
	left.merge(&right)
	if left != whole {
		t.Errorf("merged %+v, want %+v", left, whole)
	}
}
