// Package commands are the commands of bin/replay, one file each.
package commands

import (
	"errors"
	"fmt"
	"io"
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
		return cli.UsageError{Err: err}
	}
	stop, abort, release := cli.OnInterrupts()
	defer release()

	replay, err := run.Prepare(stop, &c.Settings, setup, s)
	if err != nil {
		return err
	}
	defer replay.Close()

	progress := c.showProgress(s, replay)
	status, reason := replay.Execute(stop, abort)
	cli.InTime(stop, progress.stop)
	summary, err := replay.Dir.Close(status, reason)
	if err == nil && summary.Status != record.Complete {
		err = cli.AnswerNo{Err: fmt.Errorf("the run is %s: %s", summary.Status, summary.Reason)}
	}
	if err == nil {
		err = run.LimitsError(summary.Limits)
	}
	if !cli.InTime(stop, func() { err = c.conclude(s, replay.Dir, summary, err) }) || err == nil && stop.Err() != nil {
		return cli.AnswerNo{Err: cli.ErrInterrupted}
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
		summary.WriteTable(s.Out)
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

// progressDisplay shows where a run stands: a bar on a terminal, a line every ten seconds elsewhere.
type progressDisplay struct {
	out    io.Writer
	dir    *record.Dir
	began  time.Time
	whole  time.Duration // how long the run will take; 0 unknown
	total  uint64        // how many requests it will send; 0 unknown
	paced  bool          // progress counts in time, not in requests
	bar    *progressbar.ProgressBar
	quit   chan struct{}
	ended  chan struct{}
	plainS int
}

// showProgress begins to show progress on standard error.
func (c *Run) showProgress(s cli.Streams, replay *run.Replay) *progressDisplay {
	p := &progressDisplay{out: s.Err, dir: replay.Dir, began: time.Now(), quit: make(chan struct{}), ended: make(chan struct{}), plainS: 10}
	p.whole, p.total = replay.Expected()
	p.paced = p.whole > 0
	if c.Quiet {
		close(p.ended)
		return p
	}
	if cli.IsTerminal(s.Err) {
		steps := int64(p.total)
		if p.paced {
			steps = p.whole.Milliseconds()
		}
		p.bar = progressbar.NewOptions64(max(1, steps), progressbar.OptionSetWriter(s.Err), progressbar.OptionSetWidth(20),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	go p.show()
	return p
}

func (p *progressDisplay) show() {
	defer close(p.ended)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for second := 1; ; second++ {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
		}
		switch {
		case p.bar != nil:
			p.moveBar()
		case second%p.plainS == 0:
			_, _ = fmt.Fprintln(p.out, p.line())
		}
	}
}

func (p *progressDisplay) moveBar() {
	p.bar.Describe(liveText(p.dir.Live()))
	at := int64(p.dir.Live().Sent)
	if p.paced {
		at = time.Since(p.began).Milliseconds()
	}
	_ = p.bar.Set64(min(at, p.bar.GetMax64()-1))
}

// line returns what is printed where there is no terminal.
func (p *progressDisplay) line() string {
	elapsed := time.Since(p.began).Truncate(time.Second)
	text := "replay: " + elapsed.String()
	live := p.dir.Live()
	switch {
	case p.paced:
		text += fmt.Sprintf(" of %s", p.whole.Truncate(time.Second))
	case p.total > 0 && live.Sent > 0:
		left := time.Duration(float64(elapsed) * (float64(p.total)/float64(live.Sent) - 1))
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

func (p *progressDisplay) stop() {
	close(p.quit)
	<-p.ended
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
