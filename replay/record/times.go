package record

import (
	"math"
	"slices"
	"strconv"
)

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
	if !q.enough(c.number()) {
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
	for _, p := range []struct {
		name string
		q    quantile
		into **float64
	}{
		{"p50", p50, &s.P50}, {"p90", p90, &s.P90}, {"p95", p95, &s.P95},
		{"p99", p99, &s.P99}, {"p99.9", p999, &s.P999}, {"p99.99", p9999, &s.P9999},
	} {
		ms, censored := c.percentileMS(p.q)
		*p.into = ms
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
