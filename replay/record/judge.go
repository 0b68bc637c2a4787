package record

import (
	"fmt"
	"strconv"
	"strings"
)

// Outcome is what became of a limit.
type Outcome string

const (
	Kept      Outcome = "kept"
	Exceeded  Outcome = "exceeded"
	NotJudged Outcome = "not judged"
)

// Verdict is a limit and what became of it, in summary.json.
type Verdict struct {
	Limit   string  `json:"limit"`
	Outcome Outcome `json:"outcome"`
	Says    string  `json:"says"`
}

// judge says what became of a limit. The same rules are in plimsoll/analysis/exchange/merge.py, and both are
// held against tests/fixtures/limits.json.
func (l Limit) judge(s *Summary) Verdict {
	outcome, says := l.compare(s)
	if outcome == Kept {
		switch {
		case s.Status != Complete:
			outcome, says = NotJudged, fmt.Sprintf("%s, but the run is %s: only a whole run keeps a limit", says, s.Status)
		case s.GeneratorLimited:
			outcome, says = NotJudged, says+", but the generator was the limit of this run: the load was not what was asked for"
		}
	}
	return Verdict{l.text, outcome, says}
}

// compare holds the figure against the limit.
func (l Limit) compare(s *Summary) (Outcome, string) {
	n := s.Requests.Sent - s.Requests.Warmup
	if l.figure == limitErrors {
		return l.compareErrors(s.Requests, n)
	}
	name := l.figure + " of the response time"
	if l.figure == limitMax {
		name = "the longest response time"
	}
	if n == 0 || l.figure != limitMax && !l.q.enough(n) {
		return NotJudged, fmt.Sprintf("%s takes %s, and there were %s", name, requests(l.fewest()), grouped(n))
	}
	atMostMS := l.atMostMS()
	ms, least := s.Response.figure(l.figure)
	switch {
	case ms != nil && *ms <= atMostMS:
		return Kept, fmt.Sprintf("%s is %s, within %s", name, exact(*ms), exact(atMostMS))
	case ms == nil && (least == nil || *least <= atMostMS):
		return NotJudged, name + " falls on a request that failed, and it is unknown after how long"
	}
	var is string
	if ms != nil {
		is = exact(*ms)
	} else {
		is = "at least " + exact(*least)
	}
	if s.GeneratorLimited && !s.Service.over(l.figure, atMostMS) {
		return NotJudged, fmt.Sprintf("%s is %s, over %s, but the generator was the limit of this run: it may be its doing", name, is, exact(atMostMS))
	}
	if s.Unqueued != nil && !s.Unqueued.over(l.figure, atMostMS) {
		without := "without that it is unknown"
		if ms, _ := s.Unqueued.figure(l.figure); ms != nil {
			without = "without that it is " + exact(*ms)
		}
		return NotJudged, fmt.Sprintf("%s is %s, over %s, but %s of %s waited for connections of their own clients, and %s",
			name, is, exact(atMostMS), grouped(s.Requests.ClientQueued), requests(n), without)
	}
	return Exceeded, fmt.Sprintf("%s is %s, over the limit of %s", name, is, exact(atMostMS))
}

func (l Limit) compareErrors(counts Requests, n uint64) (Outcome, string) {
	failures := counts.Failures
	limit := strconv.FormatFloat(l.percent, 'g', -1, 64) + " %"
	if n == 0 {
		return NotJudged, "no request was measured, so no share of them failed"
	}
	says := fmt.Sprintf("%s of %s failed (%s)", grouped(failures), requests(n), share(failures, n))
	switch {
	case float64(failures) > l.share()*float64(n) && float64(failures-counts.ClientTimeouts) <= l.share()*float64(n):
		return NotJudged, fmt.Sprintf("%s, over %s, but %s of them waited for connections of their own clients and were never sent",
			says, limit, grouped(counts.ClientTimeouts))
	case float64(failures) > l.share()*float64(n):
		return Exceeded, says + ", over the limit of " + limit
	case l.share() > 0 && float64(n)*l.share() < 1:
		return NotJudged, fmt.Sprintf("%s, but fewer than %s do not show a share of %s", says, requests(l.fewest()), limit)
	}
	return Kept, says + ", within " + limit
}

// fewest returns how many requests the figure takes.
func (l Limit) fewest() uint64 {
	switch {
	case l.figure == limitErrors:
		n := uint64(1 / l.share())
		for float64(n)*l.share() < 1 {
			n++
		}
		return n
	case l.figure == limitMax:
		return 1
	}
	return quantileUnit / (quantileUnit - uint64(l.q))
}

// Doubt returns why the limit of a run with so many requests at most will not be judged; "" if it may be.
func (l Limit) Doubt(most uint64) string {
	if l.figure == limitErrors && l.percent == 0 || most >= l.fewest() {
		return ""
	}
	return fmt.Sprintf("--fail-over %s will not be judged: it takes %s, and the run has %s at most", l.text, requests(l.fewest()), grouped(most))
}

// figure returns a figure by its name, or, where it is censored, what it is at least.
func (s *Statistics) figure(name string) (ms, least *float64) {
	ms = map[string]*float64{
		"p50": s.P50, "p90": s.P90, "p95": s.P95, "p99": s.P99, "p99.9": s.P999, "p99.99": s.P9999, limitMax: s.Max,
	}[name]
	return ms, s.Censored[name]
}

// over reports whether a figure is longer than that.
func (s *Statistics) over(name string, ms float64) bool {
	value, least := s.figure(name)
	return value != nil && *value > ms || value == nil && least != nil && *least > ms
}

func (l Limit) atMostMS() float64 { return float64(l.atMost.Microseconds()) / 1000 }

// exact writes milliseconds with all their microseconds, in seconds from 1,000 ms on: a figure that is just over its
// limit must not read like it.
func exact(ms float64) string {
	value, unit := ms, " ms"
	if ms >= 1000 {
		value, unit = ms/1000, " s"
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(value, 'f', 6, 64), "0"), ".") + unit
}

// requests returns a count of requests in words.
func requests(n uint64) string {
	if n == 1 {
		return "1 request"
	}
	return grouped(n) + " requests"
}

// grouped returns a count with commas between thousands.
func grouped(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Unkeepable returns why a limit cannot be kept any more, whatever is still to come, in a run of so many requests at
// most; "" while all can. What it finds is part of the summary.
func (d *Dir) Unkeepable(most uint64) string {
	d.tallyMu.Lock()
	defer d.tallyMu.Unlock()
	for i := range d.tally.limits {
		l := &d.tally.limits[i]
		if room := l.room(most); l.broken > room && l.unkeepable == "" {
			what := "failed"
			if l.figure != limitErrors {
				what = fmt.Sprintf("took over %s or failed", exact(l.atMostMS()))
			}
			l.unkeepable = fmt.Sprintf("%s %s, and of the %s that the run has at most, %s may", requests(l.broken), what, grouped(most), grouped(room))
		}
		if l.unkeepable != "" {
			return l.text + ": " + l.unkeepable
		}
	}
	return ""
}

// counted is a limit and the requests that count against it.
type counted struct {
	Limit
	broken     uint64
	unkeepable string // why it cannot be kept
}

func counting(limits []Limit) []counted {
	var all []counted
	for _, l := range limits {
		all = append(all, counted{Limit: l})
	}
	return all
}

// verdicts judges all limits at the end; nil where there are none.
func (t *tally) verdicts(s *Summary) []Verdict {
	var all []Verdict
	for _, l := range t.limits {
		v := l.judge(s)
		if v.Outcome != Exceeded && l.unkeepable != "" {
			v.Outcome, v.Says = Exceeded, l.unkeepable
		}
		all = append(all, v)
	}
	return all
}
