package traffic

import (
	"regexp"
	"time"

	"plimsoll/replay/forms"
)

// Whose host requests are sent with.
const (
	HostLog    = "log" // also that of an absolute URL
	HostTarget = "target"
)

// Plan selects requests of the logs and sets their pace.
type Plan struct {
	Speed float64       // times the recorded pace; 0: no pace, only the order counts
	Rate  float64       // requests a second at even distances, in place of the log's pace; 0: none
	Users bool          // the requests become visits of users
	Pause time.Duration // longest pause of the log that is kept, in the log's time; 0: any
	Burst bool          // requests of the same second at once
	Seed  int64         // of all that is drawn at random
	Loops int           // times through the log; 0: until Duration
	Limit uint64        // requests at most; 0: all
	Until time.Duration // nothing is due later; 0: no end

	Host string // HostLog, HostTarget; else the log's virtual host, where it names one

	Share  Share  // which clients' requests; the other fields are of all instances together
	Spread Spread // of proxies' requests

	From, To         time.Time // of the log; zero: no bound
	Include, Exclude []*regexp.Regexp
	Methods          map[string]bool
	Forms            forms.Rules // of what requests carry
	Unconditional    bool        // 304s and 206s are sent as plain requests
	NameClients      bool        // requests know their client's address
}

// Expected returns how long the run will take and how many requests it will send, as far as the counts of the logs
// tell. What is not known is 0.
func (t *Traffic) Expected() (whole time.Duration, total uint64) {
	total = t.logs.Totals.Valid * uint64(t.plan.Loops)
	if t.plan.Limit > 0 && (total == 0 || t.plan.Limit < total) {
		total = t.plan.Limit
	}
	switch {
	case t.plan.Users || t.plan.Speed == 0:
		return t.plan.Until, total
	case t.plan.Rate > 0:
		whole = time.Duration(float64(total) / t.plan.Rate * 1e9)
	default:
		whole = time.Duration(float64(t.loggedNS()) / t.plan.Speed * float64(t.plan.Loops))
	}
	if t.plan.Until > 0 && (whole == 0 || t.plan.Until < whole) {
		whole = t.plan.Until
	}
	return max(0, whole), total
}
