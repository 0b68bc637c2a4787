package record

import "math"

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

// enough reports whether n values say anything about q: at least 1/(1−q) of them.
func (q quantile) enough(n uint64) bool { return n > 0 && n >= quantileUnit/(quantileUnit-uint64(q)) }

// percentileMS returns the exact order statistic in milliseconds, nil where there are too few values.
func (c *histogram) percentileMS(q quantile) *float64 {
	if !q.enough(c.n) {
		return nil
	}
	return msOf(c.at(q.rank(c.n)))
}

func msOf(us uint64) *float64 {
	ms := float64(us) / 1000
	return &ms
}
