package run

import (
	"context"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"plimsoll/replay/traffic"
)

// openLogs finds the logs, detects their format and counts them.
func (c *Command) openLogs(ctx context.Context, s Streams, quiet bool) (*traffic.Logs, error) {
	spec, err := c.Spec()
	if err != nil {
		return nil, err
	}
	var show func(done, total int64)
	end := func() {}
	if !quiet && IsTerminal(s.Err) {
		show, end = countingProgress(s.Err)
	}
	var logs *traffic.Logs
	opened := InTime(ctx, func() {
		logs, err = traffic.Open(ctx, c.Logs, s.In, traffic.Reading{Spec: spec, AllowDuplicates: c.AllowDuplicates, Pause: c.MaxGap, Progress: show})
	})
	if opened {
		end()
	}
	switch {
	case !opened || err != nil && ctx.Err() != nil:
		return nil, AnswerNo{ErrInterrupted}
	case err != nil:
		return nil, UsageError{err}
	}
	if err := logs.CheckRejects(c.AllowRejects); err != nil {
		logs.Close()
		return nil, UsageError{err}
	}
	if c.LogTime != "auto" {
		logs.Finished = c.LogTime == "finished"
	}
	return logs, nil
}

// countingProgress shows how much of the logs is read.
func countingProgress(out io.Writer) (show func(done, total int64), end func()) {
	var bar *progressbar.ProgressBar
	return func(done, total int64) {
			if bar == nil {
				bar = progressbar.NewOptions64(max(total, 1),
					progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("Reading the log"),
					progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(),
					progressbar.OptionThrottle(200*time.Millisecond))
			}
			_ = bar.Set64(done)
		}, func() {
			if bar != nil {
				_ = bar.Finish()
			}
		}
}

// countClients counts who sends the requests, and spreads those of proxies unless that is not wanted.
func (r *Replay) countClients(ctx context.Context) error {
	c := r.command
	census, spread, err := r.logs.Census(ctx, r.setup.plan,
		traffic.Capacity{PerClient: c.ConnectionsPerClient, InAll: c.maxConnections(), Timeout: c.Timeout})
	switch {
	case err != nil && ctx.Err() != nil:
		return AnswerNo{ErrInterrupted}
	case err != nil:
		return UsageError{err}
	}
	if c.Clients == "log" {
		census.Over = 0
	} else {
		r.setup.plan.Spread = spread
	}
	r.setup.census = census
	return nil
}
