package commands

// `replay lag`: how late this machine wakes a thread.

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine/punctual"
)

// Lag is `replay lag`.
type Lag struct {
	Duration time.Duration `help:"How long to measure. Default: ${default}." default:"5s" placeholder:"D"`
	JSON     bool          `help:"Print the result as JSON."`
}

const (
	lagApart   = time.Millisecond
	lagMostMS  = 1.0 // from which a run may be marked generator_limited
	lagLeast   = time.Second
	lagLongest = time.Hour
)

// Help is printed below the usage of `replay lag`.
func (c *Lag) Help() string {
	return `Examples:
  replay lag
  replay lag --duration 1s --json

It sends nothing: a thread, set up as the one that sends, sleeps until the next millisecond and notes how late it woke.

Exit codes: 0 late by 1 ms at most at p99.9; 1 by more, so that runs on this machine may be marked generator_limited;
2 the command line is wrong.`
}

// lagResult is what `replay lag --json` prints. A figure that cannot be given is null.
type lagResult struct {
	DurationS float64        `json:"duration_s"`
	Wakes     int            `json:"wakes"`
	LagMS     lagPercentiles `json:"lag_ms"`
	InTime    bool           `json:"in_time"`
}

type lagPercentiles struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Run measures, and prints what came of it.
func (c *Lag) Run(s cli.Streams) error {
	if c.Duration < lagLeast || c.Duration > lagLongest {
		return cli.Usage(fmt.Errorf("--duration: %s is out of range, give %s to %s", c.Duration, lagLeast, lagLongest))
	}
	result := summarizeLag(punctual.MeasureLateness(c.Duration, lagApart), c.Duration)
	var err error
	if c.JSON {
		err = cli.PrintJSON(s.Out, result)
	} else {
		_, err = fmt.Fprintf(s.Out, "woke %d times in %g s; late by p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, at most %.3f ms\n",
			result.Wakes, result.DurationS, result.LagMS.P50, result.LagMS.P99, result.LagMS.P999, result.LagMS.Max)
	}
	if err != nil {
		return err
	}
	if !result.InTime {
		return fmt.Errorf("late by more than %g ms at p99.9: runs on this machine may be marked generator_limited; free its processors, or use another", lagMostMS)
	}
	return nil
}

// summarizeLag returns the exact percentiles of how late a thread woke, in nanoseconds, and whether that is in time.
func summarizeLag(late []int64, lasts time.Duration) lagResult {
	slices.Sort(late)
	at := func(permille int) float64 { // in whole numbers: 0.999 is not a binary fraction
		rank := (permille*len(late) + 999) / 1000
		return float64(late[rank-1]) / 1e6
	}
	figures := lagPercentiles{P50: at(500), P99: at(990), P999: at(999), Max: at(1000)}
	return lagResult{DurationS: lasts.Seconds(), Wakes: len(late), LagMS: figures, InTime: figures.P999 <= lagMostMS}
}
