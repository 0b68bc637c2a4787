package record

import (
	"fmt"
	"time"
)

// silence watches for a target that stops answering: from its last answer to the end of the run nothing came, though
// requests were sent. It takes records in the order in which they were done, or nearly so.
type silence struct {
	answered bool
	sinceNS  int64 // when the last answer was whole; 0 before the first
	requests uint64
	kinds    [256]uint64
}

// A silence says something when so many requests were sent in it, and it lasted so long.
const (
	silentRequests = 10
	silentFor      = 2 * time.Second
	silentShare    = 100 // a hundredth of the run
)

func (s *silence) add(r *Record) {
	switch {
	case r.Error == None || r.Status != 0 || r.TTFBUS != 0:
		if done := r.DoneNS(); !s.answered || done > s.sinceNS {
			*s = silence{answered: true, sinceNS: done}
		}
	case r.Error == Aborted: // given up by us
	case r.DueNS+int64(r.LagUS)*1000 >= s.sinceNS: // sent after the last answer, so that nobody had answered since
		s.requests++
		s.kinds[r.Error]++
	}
}

// verdict returns why a run that lasted until endNS has a dead target; "" if it has none.
func (s *silence) verdict(endNS int64) string {
	lasted := time.Duration(endNS - s.sinceNS)
	if s.requests < silentRequests || lasted < max(silentFor, time.Duration(endNS)/silentShare) {
		return ""
	}
	since := "gave no answer at all"
	if s.answered {
		since = fmt.Sprintf("gave no answer after %.1f s", time.Duration(s.sinceNS).Seconds())
	}
	usual := Other
	for kind := range s.kinds {
		if s.kinds[kind] > s.kinds[usual] {
			usual = ErrorKind(kind)
		}
	}
	return fmt.Sprintf("the target %s: the last %d requests failed within %.1f s, %d of them with %s; see why it ended, and run this again",
		since, s.requests, lasted.Seconds(), s.kinds[usual], usual)
}

// ending returns how a run ended that its program calls complete: not so where its target died.
func ending(status Status, reason string, died string) (Status, string) {
	if status == Complete && died != "" {
		return Failed, died
	}
	return status, reason
}
