package run

// Limits of a run: watched while it lasts, answered at its end.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

// limits reads --fail-over and what goes with it.
func (c *Settings) limits(wrong *cli.Problems) []record.Limit {
	limits, err := record.ParseLimits(c.FailOver, c.Timeout)
	wrong.NoteLines("--fail-over", err)
	wrong.NoteIf(c.AbortOnFail && len(c.FailOver) == 0, "--abort-on-fail needs a limit: give --fail-over p99.9=800ms")
	wrong.NoteIf(c.AbortOnFail && (c.Users > 0 || c.Loops == 0 && c.Rate == 0 && c.Limit == 0),
		"--abort-on-fail needs a run that has so many requests at most: leave it out with --users, and with --loops 0 give --rate or --limit")
	wrong.NoteIf(c.given["abort-after"] && !c.AbortOnFail, "--abort-after is only for --abort-on-fail: leave it out")
	return limits
}

// limitsToJudge returns the limits that this instance judges: all, unless others have a share of the run. Then they
// are judged over the records of all, by plimsoll merge.
func (s *Setup) limitsToJudge() []record.Limit {
	if s.Shard != nil && s.Shard.Of > 1 {
		return nil
	}
	return s.limits
}

// mostRequests returns how many requests the run sends at most.
func (r *Replay) mostRequests() uint64 {
	c := r.command
	most := r.logs.Totals.Valid * uint64(c.Loops)
	if c.Loops == 0 {
		most = math.MaxUint64
	}
	if c.Limit > 0 {
		most = min(most, uint64(c.Limit))
	}
	if c.Rate > 0 && c.Duration > 0 {
		most = min(most, uint64(math.Ceil(c.Rate*c.Duration.Seconds()))+1)
	}
	return most
}

// limitsEach is how often it is looked whether the limits can still be kept.
const limitsEach = time.Second

// overLimit ends a run that cannot keep a limit any more.
type overLimit struct{ says string }

func (e overLimit) Error() string { return "ended by --abort-on-fail: " + e.says }

// watchLimits ends the run when it cannot keep a limit any more, but not before its grace is over.
func (r *Replay) watchLimits(stop context.Context, end context.CancelCauseFunc) {
	most := r.mostRequests()
	tick := time.NewTicker(limitsEach)
	defer tick.Stop()
	for {
		select {
		case <-stop.Done():
			return
		case now := <-tick.C:
			began := r.Dir.StartedAt()
			if began.IsZero() || now.Sub(began) < r.command.AbortAfter {
				continue
			}
			if says := r.Dir.Unkeepable(most); says != "" {
				end(overLimit{says})
				return
			}
		}
	}
}

// LimitsError returns the answer to the question whether all limits are kept.
func LimitsError(verdicts []record.Verdict) error {
	var over, unknown []string
	for _, v := range verdicts {
		switch text := v.Limit + ": " + v.Says; v.Outcome {
		case record.Exceeded:
			over = append(over, text)
		case record.NotJudged:
			unknown = append(unknown, "not judged: "+text)
		}
	}
	switch all := strings.Join(append(over, unknown...), "; "); {
	case len(over) > 0:
		return fmt.Errorf("over the limit: %s", all)
	case len(unknown) > 0:
		return cli.Unknown(errors.New(all))
	}
	return nil
}
