package same

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"plimsoll/replay/traffic"
)

const (
	// mostLooks is how often a page that seems to differ is looked at; each look is two answers of either side.
	mostLooks = 3
	// patience is how many differing pages are looked at again though neither side's answers vary. Past it, it is known
	// that the sites differ.
	patience = 100
	// mostSilence is how many answers in a row may fail to come from a side until the comparison ends.
	mostSilence = 20
)

// ErrSilent ends a comparison one side of which answers nothing any more.
var ErrSilent = errors.New("gave no answer")

// Comparison compares the pages of a log on two sites.
type Comparison struct {
	Sites   [2]*Site // baseline, candidate
	Names   [2]string
	Logs    *traffic.Logs
	Choice  Choice
	Workers int
	Rate    float64       // requests a second to each side, at most; 0: no bound
	Pause   time.Duration // before a page that seems to differ is looked at again
	Found   func(p Page)

	pace    pace
	mu      sync.Mutex
	silence [2]int
	stop    context.CancelCauseFunc
	differ  int
}

// Page is one page that was compared.
type Page struct {
	Path    string
	Status  int // that both sides have, of one that is the same
	Looks   int
	verdict verdict
}

// Count returns how many pages there are to compare.
func (c *Comparison) Count(ctx context.Context) (Chosen, error) {
	return distinct(ctx, c.Logs, c.Choice, func(string) bool { return true })
}

// Go compares all pages, and calls Found for each, one at a time. When stop ends, no further page is begun; when abort
// does, those under way are given up. It returns why it ended early, or nil.
func (c *Comparison) Go(stop, abort context.Context) error {
	stop, c.stop = context.WithCancelCause(stop)
	defer c.stop(nil)
	c.pace = pace{perS: c.Rate}
	paths := make(chan string)
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for path := range paths {
				c.compare(abort, path)
			}
		}()
	}
	_, err := distinct(abort, c.Logs, c.Choice, func(path string) bool {
		select {
		case <-stop.Done():
			return false
		case paths <- path:
			return true
		}
	})
	close(paths)
	workers.Wait()
	if stop.Err() != nil {
		return context.Cause(stop)
	}
	return err
}

// compare compares one page. It asks the baseline, the candidate twice, and the baseline again: so what changes with the
// clock while the candidate is asked has changed between the baseline's answers.
func (c *Comparison) compare(ctx context.Context, path string) {
	var seen looks
	var page Page
	for look := 1; ; look++ {
		for _, side := range [...]int{0, 1, 1, 0} {
			c.pace.wait(ctx, side)
			answer := c.Sites[side].Get(ctx, path)
			if ctx.Err() != nil {
				return
			}
			c.heard(side, answer)
			if side == 0 {
				seen.baseline = append(seen.baseline, answer)
			} else {
				seen.candidate = append(seen.candidate, answer)
			}
		}
		page = Page{Path: path, Status: seen.baseline[0].Status, Looks: look, verdict: seen.judge(c.Sites)}
		if look == mostLooks || !c.again(page.verdict, look) || !sleep(ctx, c.Pause) {
			break
		}
		if seen.isHiccup() {
			seen = looks{}
		}
	}
	if ctx.Err() == nil {
		c.report(page)
	}
}

// again reports whether another look may show that a page does not differ.
func (c *Comparison) again(v verdict, look int) bool {
	if v.outcome == alike {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.steady {
		return look == 1 && v.kind != Bytes && v.kind != Image && c.differ < patience
	}
	return true
}

func (c *Comparison) report(p Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.verdict.outcome == differs {
		c.differ++
	}
	c.Found(p)
}

// heard ends the comparison once a side has been silent for long.
func (c *Comparison) heard(side int, answer *Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer.Err == nil || !isSilence(answer.Err) {
		c.silence[side] = 0
		return
	}
	if c.silence[side]++; c.silence[side] == mostSilence {
		c.stop(fmt.Errorf("the %s %w to %d requests in a row (%w): see whether it runs, then compare again",
			c.Names[side], ErrSilent, mostSilence, answer.Err))
	}
}

// pace spaces the requests to each side.
type pace struct {
	perS float64
	mu   sync.Mutex
	next [2]time.Time
}

func (p *pace) wait(ctx context.Context, side int) {
	if p.perS <= 0 {
		return
	}
	p.mu.Lock()
	now := time.Now()
	due := p.next[side]
	if due.Before(now) {
		due = now
	}
	p.next[side] = due.Add(time.Duration(float64(time.Second) / p.perS))
	p.mu.Unlock()
	sleep(ctx, due.Sub(now))
}

// sleep reports whether the time has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
