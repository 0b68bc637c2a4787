// Exact statistics of times.

package record

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
)

// Statistics of one kind of time in milliseconds. Percentiles are exact order statistics (nearest rank); a
// statistic that cannot be given is nil, which is null in JSON. Censored has those that fall on failures: all that
// is known is that they are no less than this, which is nil if the time-out is unknown.
type Statistics struct {
	Mean   *float64 `json:"mean"`
	Stddev *float64 `json:"stddev"` // of the population
	Min    *float64 `json:"min"`
	P50    *float64 `json:"p50"`
	P90    *float64 `json:"p90"`
	P95    *float64 `json:"p95"`
	P99    *float64 `json:"p99"`
	P999   *float64 `json:"p99.9"`
	P9999  *float64 `json:"p99.99"`
	Max    *float64 `json:"max"`

	Censored map[string]*float64 `json:"censored,omitempty"`

	wrong map[string]bool // those of Censored that fall on wrong answers, which came before their time-out
}

// figure is one of Statistics: its name, its quantile, and its field.
type figure struct {
	name string
	q    quantile
	of   func(s *Statistics) **float64
}

// figures are all of them, in the order in which they are listed.
var figures = []figure{
	{"mean", 0, func(s *Statistics) **float64 { return &s.Mean }},
	{"stddev", 0, func(s *Statistics) **float64 { return &s.Stddev }},
	{"min", 0, func(s *Statistics) **float64 { return &s.Min }},
	{"p50", p50, func(s *Statistics) **float64 { return &s.P50 }},
	{"p90", p90, func(s *Statistics) **float64 { return &s.P90 }},
	{"p95", p95, func(s *Statistics) **float64 { return &s.P95 }},
	{"p99", p99, func(s *Statistics) **float64 { return &s.P99 }},
	{"p99.9", p999, func(s *Statistics) **float64 { return &s.P999 }},
	{"p99.99", p9999, func(s *Statistics) **float64 { return &s.P9999 }},
	{"max", quantileUnit, func(s *Statistics) **float64 { return &s.Max }},
}

// firstPercentile is the first of figures that is a percentile. All that follow but the last are.
const firstPercentile = 3

var percentiles = figures[firstPercentile : len(figures)-1]

func (c *histogram) statistics() (s Statistics) {
	if c.n == 0 {
		return s
	}
	mean, stddev := c.mean()/1000, c.stddev()/1000
	s.Mean, s.Stddev, s.Min, s.Max = &mean, &stddev, msOf(c.min), msOf(c.max)
	for _, p := range percentiles {
		*p.of(&s) = c.percentileMS(p.q)
	}
	return s
}

// histogram is an exact histogram of whole microseconds: one counter per value, on pages that are created when a value
// falls on them. Counters start with one byte and a page takes eight-byte ones when a byte overflows, so the memory
// depends on the range of the values and not on their number: at most 1 MB of small counters a second of range (30 s of
// timeout: 30 MB, where every single microsecond of it was seen).
type histogram struct {
	moments
	pages    []page
	min, max uint64
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

type page struct {
	total  uint64
	narrow *[pageSize]uint8
	wide   *[pageSize]uint64
}

func (p *page) add(slot uint64) {
	p.total++
	switch {
	case p.wide != nil:
		p.wide[slot]++
	case p.narrow == nil:
		p.narrow = new([pageSize]uint8)
		p.narrow[slot] = 1
	case p.narrow[slot] < math.MaxUint8:
		p.narrow[slot]++
	default:
		p.widen()
		p.wide[slot]++
	}
}

func (p *page) widen() {
	p.wide = new([pageSize]uint64)
	for i, n := range p.narrow {
		p.wide[i] = uint64(n)
	}
	p.narrow = nil
}

func (p *page) at(slot int) uint64 {
	if p.wide != nil {
		return p.wide[slot]
	}
	return uint64(p.narrow[slot])
}

func (c *histogram) add(us uint64) {
	if c.n == 0 || us < c.min {
		c.min = us
	}
	c.max = max(c.max, us)
	c.moments.add(us)
	i := int(us >> pageBits)
	if i >= len(c.pages) {
		c.pages = append(c.pages, make([]page, i+1-len(c.pages))...)
	}
	c.pages[i].add(us & (pageSize - 1))
}

// at returns the value of rank k (from 1) in ascending order; k must be at most n.
func (c *histogram) at(rank uint64) uint64 {
	for i := range c.pages {
		p := &c.pages[i]
		if rank > p.total {
			rank -= p.total
			continue
		}
		for slot := range pageSize {
			n := p.at(slot)
			if rank <= n {
				return uint64(i)<<pageBits | uint64(slot)
			}
			rank -= n
		}
	}
	return c.max
}

// quantile is a percentile in parts of ten thousand, so that ranks are computed in whole numbers.
type quantile uint64

const quantileUnit = 10_000

const (
	p50   quantile = 5000
	p90   quantile = 9000
	p95   quantile = 9500
	p99   quantile = 9900
	p999  quantile = 9990
	p9999 quantile = 9999
)

// rank returns ⌈q·n⌉, the nearest rank.
func (q quantile) rank(n uint64) uint64 {
	whole, rest := n/quantileUnit, n%quantileUnit
	return whole*uint64(q) + (rest*uint64(q)+quantileUnit-1)/quantileUnit
}

// isEnough reports whether n values say anything about q: at least 1/(1−q) of them.
func (q quantile) isEnough(n uint64) bool { return n > 0 && n >= quantileUnit/(quantileUnit-uint64(q)) }

// percentileMS returns the exact order statistic in milliseconds, nil where there are too few values.
func (c *histogram) percentileMS(q quantile) *float64 {
	if !q.isEnough(c.n) {
		return nil
	}
	return msOf(c.at(q.rank(c.n)))
}

func msOf(us uint64) *float64 {
	ms := float64(us) / 1000
	return &ms
}

// times are response or service times, those of failures among them. A failure is never fast: it counts at its
// time-out, or at its own time where that is longer. How long a good answer would have taken is unknown, so a
// percentile that falls on it has no value: it is censored.
type times struct {
	histogram         // of good answers
	failed    moments // of failures, as they count
	leastUS   uint64  // the shortest of those
	wrong     uint64  // those that are wrong answers, and came before their time-out
}

// addOf counts a time of a request.
func (c *times) addOf(r *Record, us, timeoutUS uint64) {
	if r.Failed() {
		c.addFailed(us, timeoutUS, r.Error == None)
	} else {
		c.add(us)
	}
}

// clone returns a copy that shares nothing.
func (c *times) clone() *times {
	own := *c
	own.pages = slices.Clone(c.pages)
	for i := range own.pages {
		p := &own.pages[i]
		if p.narrow != nil {
			narrow := *p.narrow
			p.narrow = &narrow
		}
		if p.wide != nil {
			wide := *p.wide
			p.wide = &wide
		}
	}
	return &own
}

// addFailed counts a request that failed after so long. If its time-out is unknown (0), it counts longer than all
// others. It was answered, wrongly, or not at all.
func (c *times) addFailed(us, timeoutUS uint64, answered bool) {
	if answered && (timeoutUS == 0 || us < timeoutUS) {
		c.wrong++
	}
	counted := max(us, timeoutUS)
	if timeoutUS == 0 {
		counted = math.MaxUint64
	}
	if c.failed.n == 0 || counted < c.leastUS {
		c.leastUS = counted
	}
	c.failed.add(counted)
}

// number returns how many requests there are, failures included.
func (c *times) number() uint64 { return c.n + c.failed.n }

// rankMS returns the order statistic of a rank (from 1 to number) in milliseconds; nil where it is censored.
func (c *times) rankMS(rank uint64) *float64 {
	if rank > c.n {
		return nil
	}
	us := c.at(rank)
	if c.failed.n > 0 && us >= c.leastUS {
		return nil
	}
	return msOf(us)
}

// percentileMS returns the exact order statistic in milliseconds; nil where there are too few requests, or where it is
// censored.
func (c *times) percentileMS(q quantile) (ms *float64, censored bool) {
	if !q.isEnough(c.number()) {
		return nil, false
	}
	ms = c.rankMS(q.rank(c.number()))
	return ms, ms == nil
}

// atLeastMS returns the lower bound of all that is censored; nil if unknown.
func (c *times) atLeastMS() *float64 {
	if c.leastUS == math.MaxUint64 {
		return nil
	}
	return msOf(c.leastUS)
}

// statistics returns all of them; the mean and the standard deviation count failures as percentiles do, and are nil
// where no time-out is known.
func (c *times) statistics() Statistics {
	var s Statistics
	n := c.number()
	if n == 0 {
		return s
	}
	if c.failed.n == 0 || c.leastUS != math.MaxUint64 {
		all := c.moments
		all.merge(&c.failed)
		mean, stddev := all.mean()/1000, all.stddev()/1000
		s.Mean, s.Stddev = &mean, &stddev
	}
	note := func(name string, rank uint64, censored bool) {
		if !censored {
			return
		}
		if s.Censored == nil {
			s.Censored, s.wrong = map[string]*float64{}, map[string]bool{}
		}
		s.Censored[name] = c.atLeastMS()
		s.wrong[name] = rank > c.n && rank <= c.n+c.wrong // before those without any answer
	}
	s.Min, s.Max = c.rankMS(1), c.rankMS(n)
	note("min", 1, s.Min == nil)
	note("max", n, s.Max == nil)
	for _, p := range percentiles {
		ms, censored := c.percentileMS(p.q)
		*p.of(&s) = ms
		note(p.name, p.q.rank(n), censored)
	}
	if 2*c.wrong > n { // they would be means of the time-out
		s.wrong["mean"], s.wrong["stddev"] = true, true
	}
	return s
}

// atLeast returns what is shown in place of a censored figure: "≥ 30 s", or a dash if no bound is known.
func atLeast(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return "≥ " + strconv.FormatFloat(*ms/1000, 'g', 6, 64) + " s"
}

// wide is an unsigned 128-bit sum. Squares of microseconds outgrow 64 bits within one long request.
type wide struct{ hi, lo uint64 }

func (w *wide) add(v uint64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, v, 0)
	w.hi += carry
}

func (w *wide) addSquare(v uint64) {
	hi, lo := bits.Mul64(v, v)
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

func (w wide) big() *big.Int {
	b := new(big.Int).SetUint64(w.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(w.lo))
}

// moments are the exact sums behind a mean and a population standard deviation.
type moments struct {
	n              uint64
	sum, sumSquare wide
}

func (m *moments) add(v uint64) {
	m.n++
	m.sum.add(v)
	m.sumSquare.addSquare(v)
}

func (m *moments) merge(o *moments) {
	m.n += o.n
	m.sum = m.sum.plus(o.sum)
	m.sumSquare = m.sumSquare.plus(o.sumSquare)
}

func (w wide) plus(o wide) wide {
	lo, carry := bits.Add64(w.lo, o.lo, 0)
	hi, _ := bits.Add64(w.hi, o.hi, carry)
	return wide{hi: hi, lo: lo}
}

// mean returns Σx / n; n must not be 0.
func (m *moments) mean() float64 {
	mean, _ := new(big.Rat).SetFrac(m.sum.big(), new(big.Int).SetUint64(m.n)).Float64()
	return mean
}

// stddev returns the population's, √(n·Σx² − (Σx)²) / n, without cancellation since the sums are whole numbers.
func (m *moments) stddev() float64 {
	n := new(big.Int).SetUint64(m.n)
	sum := m.sum.big()
	v := new(big.Int).Mul(n, m.sumSquare.big())
	v.Sub(v, new(big.Int).Mul(sum, sum))
	root := new(big.Float).SetPrec(128).SetInt(v)
	root.Sqrt(root)
	root.Quo(root, new(big.Float).SetInt(n))
	f, _ := root.Float64()
	return f
}
