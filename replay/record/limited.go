package record

import "fmt"

// A generator is limited when its own lag is too long to be ignored, both in itself and beside what it measured.
const (
	limitLagMS    = 1.0
	limitFraction = 0.05
)

// limited judges the p99.9 of the lag of requests that were not queued, against the p99.9 of the response
// time. Where there are fewer than 1,000 of either, nothing can be said and nothing is.
func limited(lagMS, responseMS *float64) (bool, string) {
	if lagMS == nil || responseMS == nil || *lagMS <= limitLagMS || *lagMS <= limitFraction**responseMS {
		return false, ""
	}
	return true, fmt.Sprintf("the generator sent late: one request in a thousand by over %.3g ms, where the p99.9 response time is "+
		"%.3g ms; use a lower --speed or --rate, stop other programs on this machine, or give the generator processor cores of its own",
		*lagMS, *responseMS)
}
