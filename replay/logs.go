package main

import (
	"context"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"plimsoll/replay/traffic"
)

// openLogs finds the logs, detects their format and counts them.
func (c *runCmd) openLogs(ctx context.Context, s streams, quiet bool) (*traffic.Logs, error) {
	spec, err := c.spec()
	if err != nil {
		return nil, err
	}
	var show func(done, total int64)
	end := func() {}
	if !quiet && isTerminal(s.err) {
		show, end = countingProgress(s.err)
	}
	logs, err := traffic.Open(ctx, c.Logs, s.in, spec, show)
	end()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, answerNo{errInterrupted}
	case err != nil:
		return nil, usageError{err}
	}
	if err := logs.Tolerable(c.AllowRejects); err != nil {
		logs.Close()
		return nil, usageError{err}
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
				bar = progressbar.NewOptions64(max(total, 1), progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("Reading the log"),
					progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(200*time.Millisecond))
			}
			_ = bar.Set64(done)
		}, func() {
			if bar != nil {
				_ = bar.Finish()
			}
		}
}
