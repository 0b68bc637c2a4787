package run

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"plimsoll/replay/record"
	"plimsoll/replay/traffic"
)

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

// newProgress begins to show progress on standard error.
func (c *Command) newProgress(s Streams, dir *record.Dir, t *traffic.Traffic) *progressDisplay {
	p := &progressDisplay{out: s.Err, dir: dir, began: time.Now(), quit: make(chan struct{}), ended: make(chan struct{}), plainS: 10}
	p.whole, p.total = t.Expected()
	p.paced = p.whole > 0
	if c.Quiet {
		close(p.ended)
		return p
	}
	if IsTerminal(s.Err) {
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
