// Package same compares two sites, page by page, over the requests of a log: each page is asked for on both, and as
// often as it takes to know what of it varies by itself.
package same

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"plimsoll/replay/traffic"
)

const (
	// maxLooks is how often a page that seems to differ is looked at; each look is two answers of either side.
	maxLooks = 3
	// maxRechecks is how many differing pages are looked at again though neither side's answers vary. Past it, it is known
	// that the sites differ.
	maxRechecks = 100
	// maxSilence is how many answers in a row may fail to come from a side until the comparison ends.
	maxSilence = 20
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

// Execute compares all pages, and calls Found for each, one at a time. When stop ends, no further page is begun; when
// abort does, those under way are given up. It returns why it ended early, or nil.
func (c *Comparison) Execute(stop, abort context.Context) error {
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
	var seen answerSets
	var page Page
	for look := 1; ; look++ {
		for _, side := range [...]int{0, 1, 1, 0} {
			c.pace.wait(ctx, side)
			answer := c.Sites[side].Get(ctx, path)
			if ctx.Err() != nil {
				return
			}
			c.noteSilence(side, answer)
			if side == 0 {
				seen.baseline = append(seen.baseline, answer)
			} else {
				seen.candidate = append(seen.candidate, answer)
			}
		}
		page = Page{Path: path, Status: seen.baseline[0].Status, Looks: look, verdict: seen.judge(c.Sites)}
		if look == maxLooks || !c.again(page.verdict, look) || !sleep(ctx, c.Pause) {
			break
		}
		if seen.isHiccup() {
			seen = answerSets{}
		}
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if page.verdict.outcome == differs {
			c.differ++
		}
		c.Found(page)
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
		return look == 1 && v.kind != Bytes && v.kind != Image && c.differ < maxRechecks
	}
	return true
}

// noteSilence ends the comparison once a side has been silent for long.
func (c *Comparison) noteSilence(side int, answer *Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer.Err == nil || !isSilence(answer.Err) {
		c.silence[side] = 0
		return
	}
	if c.silence[side]++; c.silence[side] == maxSilence {
		c.stop(fmt.Errorf("the %s %w to %d requests in a row (%w): see whether it runs, then compare again",
			c.Names[side], ErrSilent, maxSilence, answer.Err))
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

// Choice says which of a log's requests are compared.
type Choice struct {
	Include, Exclude []*regexp.Regexp
	VHosts           map[string]bool // virtual hosts, as the log names them; none: all
	Limit            uint64          // pages at most; 0: all
	Sample           float64         // this share of the pages, drawn by their targets and the seed; 1: all
	Seed             int64
	Most             int // distinct targets that are remembered
}

// Chosen counts what became of the requests of a log. What is left out is counted by reason.
type Chosen struct {
	Requests uint64            `json:"requests"`
	Pages    uint64            `json:"pages"`
	LeftOut  map[string]uint64 `json:"left_out"`
	VHosts   []string          `json:"vhosts"` // that the log names, of the requests that were chosen: the first of them (hostile)
}

// The reasons to leave a request, or a page, out.
const (
	LeftMethod  = "method"      // requests other than GET
	LeftFilter  = "filter"      // --include, --exclude, --vhost
	LeftTarget  = "target"      // requests for no path of the server itself
	LeftSample  = "sample"      // pages that --sample did not draw
	LeftLimit   = "limit"       // pages beyond --limit
	LeftTargets = "max_targets" // requests beyond --max-targets, which may be for pages that were seen
)

// distinct calls use for each page of the logs that was chosen, once, in the order in which they were asked for first,
// until it returns false. A target takes 16 bytes of memory, and what a hash table adds.
func distinct(ctx context.Context, logs *traffic.Logs, choice Choice, use func(path string) bool) (Chosen, error) {
	found := Chosen{LeftOut: map[string]uint64{}, VHosts: []string{}}
	seen := map[[16]byte]struct{}{}
	err := logs.EachGet(ctx, func(path, vhost []byte, isGet bool) bool {
		found.Requests++
		reason := choice.leftOut(path, vhost, isGet)
		if reason != "" {
			found.LeftOut[reason]++
			return true
		}
		found.noteVHost(vhost)
		sum := sha256.Sum256(path)
		key := [16]byte(sum[:16])
		if _, known := seen[key]; known {
			return true
		}
		if len(seen) >= choice.Most {
			found.LeftOut[LeftTargets]++
			return true
		}
		seen[key] = struct{}{}
		switch {
		case !choice.isDrawn(path):
			found.LeftOut[LeftSample]++
		case choice.Limit > 0 && found.Pages >= choice.Limit:
			found.LeftOut[LeftLimit]++
		default:
			found.Pages++
			return use(string(path))
		}
		return true
	})
	return found, err
}

// mostVHosts is how many virtual hosts are named.
const mostVHosts = 5

func (c *Chosen) noteVHost(name []byte) {
	if len(name) == 0 || len(c.VHosts) == mostVHosts {
		return
	}
	if !slices.ContainsFunc(c.VHosts, func(known string) bool { return known == string(name) }) {
		c.VHosts = append(c.VHosts, string(name))
	}
}

// leftOut returns why a request is not a page to compare, or "".
func (c *Choice) leftOut(path, vhost []byte, isGet bool) string {
	switch {
	case !isGet:
		return LeftMethod
	case len(c.VHosts) > 0 && !c.VHosts[string(vhost)], !matches(c.Include, path, true), matches(c.Exclude, path, false):
		return LeftFilter
	case !canBeAsked(string(path)):
		return LeftTarget
	}
	return ""
}

func matches(patterns []*regexp.Regexp, path []byte, without bool) bool {
	for _, re := range patterns {
		if re.Match(path) {
			return true
		}
	}
	return len(patterns) == 0 && without
}

// isDrawn reports whether a page is in the sample: the same pages for the same seed, in any log.
func (c *Choice) isDrawn(path []byte) bool {
	if c.Sample >= 1 {
		return true
	}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, c.Seed)
	h.Write(path)
	return float64(binary.LittleEndian.Uint64(h.Sum(nil))) < c.Sample*math.MaxUint64
}
