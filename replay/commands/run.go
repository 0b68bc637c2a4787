// Package commands are the commands of bin/replay, one file each.
package commands

import (
	"errors"
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

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
  replay run examples/access.log                              against an embedded origin, at the recorded pace
  replay run 'examples/access.log*' --target http://127.0.0.1:8080 --speed 20  a rotated set, twenty times as fast
  replay run examples/access.log --target https://shop.example --connect-to 127.0.0.1:8443 --insecure --speed 20
  replay run examples/access.log --target http://127.0.0.1:8080 --speed max --connections 64 --grinder-log
  replay run examples/access.log --target http://127.0.0.1:8080 --users 1000 --duration 5s
  replay run examples/access.log --target http://127.0.0.1:8080 --speed 20 --fail-over p99.9=800ms,errors=0.1%

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
		s.Warn(text)
	}
	if summary.Status == record.Complete && summary.GeneratorLimited {
		s.Warn(summary.GeneratorLimitedReason)
	}
	return err
}

// showProgress shows on standard error where the run stands, until the function that it returns is called.
func (c *Run) showProgress(s cli.Streams, replay *run.Replay) (end func()) {
	began := time.Now()
	whole, total := replay.Expected()
	steps := int64(total)
	if whole > 0 { // progress counts in time, not in requests
		steps = whole.Milliseconds()
	}
	progress := cli.NewProgress(s, c.ShowsProgress(s), steps, "", progressbar.OptionSetPredictTime(false))
	if progress == nil {
		return func() {}
	}
	ticker := time.NewTicker(progress.Interval())
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
			live, elapsed := replay.Dir.Live(), time.Since(began)
			at := int64(live.Sent)
			if whole > 0 {
				at = elapsed.Milliseconds()
			}
			text := progressText(elapsed, whole, total, live)
			progress.Describe(text)
			progress.Show(min(at, max(1, steps)-1), func() string {
				return fmt.Sprintf("%s, %d sent, %s", elapsed.Truncate(time.Second), live.Sent, text)
			})
		}
	}()
	return func() {
		close(quit)
		<-ended
		progress.End()
	}
}

// progressText returns throughput, p99.9 and the time left, where that is known: first what matters most, since a
// terminal may be narrow.
func progressText(elapsed, whole time.Duration, total uint64, live record.Live) string {
	response, left := milliseconds(live.ResponseP999MS), ""
	if live.AtLeast != "" {
		response = live.AtLeast
	}
	if whole == 0 && total > 0 && live.Sent > 0 {
		whole = time.Duration(float64(elapsed) * float64(total) / float64(live.Sent))
	}
	if whole > 0 {
		left = fmt.Sprintf("%s left, ", max(0, whole-elapsed).Round(time.Second))
	}
	return fmt.Sprintf("%.0f/s, p99.9 %s, %s%d errors, lag p99.9 %s", live.RatePerS, response, left, live.Errors, milliseconds(live.LagP999MS))
}

func milliseconds(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f ms", *ms)
}
