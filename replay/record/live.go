package record

// Live is where a run stands, for its progress line.
type Live struct {
	Sent, Errors   uint64
	RatePerS       float64  // requests done a second, over the last second
	ResponseP999MS *float64 // nil for fewer than 1,000 measured requests, as is the next
	LagP999MS      *float64
}

// Live reports the run so far. Percentiles are up to a second behind the counts.
func (d *Dir) Live() Live {
	var l Live
	l.Sent, l.Errors = d.queue.counts()
	d.tallyMu.Lock()
	defer d.tallyMu.Unlock()
	l.RatePerS = d.ratePerS
	l.ResponseP999MS = d.tally.response.percentileMS(p999)
	l.LagP999MS = d.tally.lag.percentileMS(p999)
	return l
}
