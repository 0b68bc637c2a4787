package record

// Statistics of one kind of time in milliseconds. Percentiles are exact order statistics (nearest rank); a
// figure that cannot be given is nil, which is null in JSON.
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
}

func (c *counts) statistics() Statistics {
	if c.n == 0 {
		return Statistics{}
	}
	mean, stddev := c.mean()/1000, c.stddev()/1000
	return Statistics{
		Mean: &mean, Stddev: &stddev, Min: msOf(c.min), Max: msOf(c.max),
		P50: c.percentileMS(p50), P90: c.percentileMS(p90), P95: c.percentileMS(p95),
		P99: c.percentileMS(p99), P999: c.percentileMS(p999), P9999: c.percentileMS(p9999),
	}
}
