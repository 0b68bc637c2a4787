// Package commands are the commands of bin/replay, one file each.
package commands

import (
	"errors"
	"fmt"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
	"plimsoll/replay/run"
)

// `replay run`: what it prints, while it runs and at its end.

// Run is `replay run`.
type Run struct{ run.Settings }

// Help is printed below the usage of `replay run`.
func (c *Run) Help() string {
	return `Examples:
  replay run access.log                                       against an embedded origin, at the recorded pace
  replay run access.log* --target http://10.0.0.5 --speed 10  a rotated set, ten times as fast
  replay run access.log --target https://shop.example --connect-to 10.0.0.5:443
  replay run access.log --target http://10.0.0.5 --speed max --connections 64
  replay run access.log --target http://10.0.0.5 --users 10000 --duration 10m
  replay run access.log --target http://10.0.0.5 --fail-over p99.9=800ms --fail-over errors=0.1%

Exit codes: 0 the replay is complete, within all limits; 1 it is over one, was interrupted or failed; 2 the command line
or a file is wrong; 3 it is complete, but a limit could not be judged.`
}

// Run replays the logs, from the command line to the summary.
func (c *Run) Run(s cli.Streams) error {
	setup, err := c.Check()
	if err != nil {
		return cli.Usage(err)
	}
	stop, abort, release := cli.OnInterrupts()
	defer release()

	replay, err := run.Prepare(stop, &c.Settings, setup, s)
	if err != nil {
		return err
	}
	defer replay.Close()

	endProgress := c.showProgress(s, replay)
	status, reason := replay.Execute(stop, abort)
	cli.InTime(stop, endProgress)
	summary, err := replay.Dir.Close(status, reason)
	if err == nil && summary.Status != record.Complete {
		err = fmt.Errorf("the run is %s: %s", summary.Status, summary.Reason)
	}
	if err == nil {
		err = run.LimitsError(summary.Limits)
	}
	if !cli.InTime(stop, func() { err = c.conclude(s, replay.Dir, summary, err) }) || err == nil && stop.Err() != nil {
		return cli.ErrInterrupted
	}
	return err
}

// conclude prints what was measured and where it is.
func (c *Run) conclude(s cli.Streams, dir *record.Dir, summary record.Summary, err error) error {
	if c.JSON {
		if jsonErr := cli.PrintJSON(s.Out, summary); jsonErr != nil {
			return errors.Join(err, jsonErr)
		}
	} else {
		summary.WriteText(s.Out)
		if !errors.Is(err, record.ErrGone) {
			fmt.Fprintf(s.Out, "\nRun directory: %s\n", cli.Printable(dir.Path()))
		}
	}
	if text := run.MembersWarning(summary.Members); summary.Status == record.Complete && text != "" {
		cli.Warn(s.Err, text)
	}
	if summary.Status == record.Complete && summary.GeneratorLimited {
		cli.Warn(s.Err, summary.GeneratorLimitedReason)
	}
	return err
}

// showProgress shows on standard error where the run stands, until the function that it returns is called.
func (c *Run) showProgress(s cli.Streams, replay *run.Replay) (end func()) {
	if c.Quiet {
		return func() {}
	}
	began := time.Now()
	whole, total := replay.Expected()
	steps := int64(total)
	if whole > 0 { // progress counts in time, not in requests
		steps = whole.Milliseconds()
	}
	progress := cli.NewProgress(s, false, steps, "")
	ticker := time.NewTicker(cli.LinesApart)
	if cli.IsTerminal(s.Err) {
		ticker.Reset(time.Second)
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			live := replay.Dir.Live()
			at := int64(live.Sent)
			if whole > 0 {
				at = time.Since(began).Milliseconds()
			}
			progress.Describe(liveText(live))
			progress.Show(min(at, max(1, steps)-1), func() string { return progressLine(time.Since(began), whole, total, live) })
		}
	}()
	return func() {
		close(quit)
		<-ended
		progress.End()
	}
}

// progressLine returns what is printed if standard error is not a terminal.
func progressLine(elapsed, whole time.Duration, total uint64, live record.Live) string {
	elapsed = elapsed.Truncate(time.Second)
	text := "replay: " + elapsed.String()
	switch {
	case whole > 0:
		text += fmt.Sprintf(" of %s", whole.Truncate(time.Second))
	case total > 0 && live.Sent > 0:
		left := time.Duration(float64(elapsed) * (float64(total)/float64(live.Sent) - 1))
		text += fmt.Sprintf(", %s to go", max(0, left).Truncate(time.Second))
	}
	return text + ", " + liveText(live)
}

func liveText(l record.Live) string {
	response := milliseconds(l.ResponseP999MS)
	if l.AtLeast != "" {
		response = l.AtLeast
	}
	return fmt.Sprintf("%d sent, %.0f/s, p99.9 %s, %d errors, lag p99.9 %s",
		l.Sent, l.RatePerS, response, l.Errors, milliseconds(l.LagP999MS))
}

func milliseconds(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f ms", *ms)
}
