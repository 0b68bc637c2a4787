// Limits of a run (--fail-over): parsed, counted, judged.

package record

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit is what a figure of a run is to stay within: a percentile or the maximum of the response time, or the share of
// requests that fail.
type Limit struct {
	text    string // as it was given: p99.9=800ms
	figure  string // of Statistics, or limitErrors
	q       quantile
	atMost  time.Duration
	percent float64 // of limitErrors
}

const (
	limitErrors = "errors"
	limitMax    = "max"
)

// ParseLimits reads limits as they are written, p99.9=800ms or errors=0.1%, and reports everything that is wrong with
// them at once. A request that takes longer than the time-out has failed, so limits of times lie below that.
func ParseLimits(texts []string, timeout time.Duration) ([]Limit, error) {
	var limits []Limit
	var wrong []error
	for _, text := range texts {
		l, err := parseLimit(text, timeout)
		if err == nil && slices.ContainsFunc(limits, func(o Limit) bool { return o.figure == l.figure }) {
			err = fmt.Errorf("%q: %s has a limit already, give one", text, l.figure)
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		limits = append(limits, l)
	}
	return limits, errors.Join(wrong...)
}

func parseLimit(text string, timeout time.Duration) (Limit, error) {
	name, value, _ := strings.Cut(text, "=")
	l := Limit{figure: strings.TrimSpace(name)}
	value = strings.TrimSpace(value)
	var names []string
	for _, f := range append(figures[firstPercentile:len(figures):len(figures)], figure{name: limitErrors}) {
		if names = append(names, f.name); f.name == l.figure {
			l.q = f.q
		}
	}
	if !slices.Contains(names, l.figure) {
		return l, fmt.Errorf("%q: %q is not a figure: give one of %s, such as p99.9=800ms or errors=0.1%%", text, l.figure, strings.Join(names, ", "))
	}
	l.text = l.figure + "=" + value
	if l.figure == limitErrors {
		var err error
		number, hasUnit := strings.CutSuffix(value, "%")
		l.percent, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !hasUnit || !(l.percent >= 0 && l.percent < 100) {
			return l, fmt.Errorf("%q: %q is not a share of requests: give 0%% to under 100%%, such as errors=0.1%%", text, value)
		}
		return l, nil
	}
	var err error
	l.atMost, err = time.ParseDuration(value)
	switch {
	case err != nil || l.atMost <= 0:
		return l, fmt.Errorf("%q: %q is not a time: give one with its unit, such as %s=800ms or %s=1.5s", text, value, l.figure, l.figure)
	case l.atMost >= timeout:
		return l, fmt.Errorf("%q: a request that takes %v has failed (--timeout): give a shorter time, or a longer --timeout", text, timeout)
	}
	return l, nil
}

// String returns the limit as it was given.
func (l Limit) String() string { return l.text }

// share returns the limit of the errors, from 0 to 1.
func (l Limit) share() float64 { return l.percent / 100 }

// breaks reports whether a request counts against the limit, whatever the generator's own lateness and
// the wait for its own client's connections added to it.
func (l Limit) breaks(r *Record) bool {
	if r.Failed() {
		return !r.wasNeverSent()
	}
	late := uint64(r.LagUS)
	if r.Flags&Queued != 0 && r.Flags&ClientQueued == 0 {
		late = min(uint64(r.LateUS), late)
	}
	return l.figure != limitErrors && r.ResponseUS()-late > uint64(l.atMost.Microseconds())
}

// mayBreak returns how many of n requests may break the limit.
func (l Limit) mayBreak(n uint64) uint64 {
	if l.figure == limitErrors {
		return uint64(l.share() * float64(n))
	}
	return n - l.q.rank(n)
}

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

// judge says what became of a limit. The same rules are in plimsoll/analysis/exchange/limits.py, and both are
// held against tests/fixtures/limits.json.
func (l Limit) judge(s *Summary) Verdict {
	outcome, says := l.compare(s)
	if outcome == Kept {
		switch {
		case s.Status != Complete:
			outcome, says = NotJudged, fmt.Sprintf("%s, but the run is %s: only a whole run keeps a limit", says, s.Status)
		case s.limitedOtherwise():
			outcome, says = NotJudged, says+", but the generator was the limit of this run: the load was not what was asked for"
		}
	}
	return Verdict{l.text, outcome, says}
}

// compare holds the figure against the limit, where it is known whether the generator's own lateness was in it: a limit is
// kept with all of it, and exceeded without it.
func (l Limit) compare(s *Summary) (Outcome, string) {
	n := s.Requests.Sent - s.Requests.Warmup
	if l.figure == limitErrors {
		outcome, says := l.compareErrors(s.Requests, n)
		if outcome == Kept && isBunched(s.Moved, &s.Late, "p99.9", 0) {
			return NotJudged, says + ", but " + bursts(s.Moved)
		}
		return outcome, says
	}
	name := l.figure + " of the response time"
	if l.figure == limitMax {
		name = "the longest response time"
	}
	if n == 0 || l.figure != limitMax && !l.q.isEnough(n) {
		return NotJudged, fmt.Sprintf("%s takes %s, and there were %s", name, requests(l.fewestRequests()), grouped(n))
	}
	atMostMS := l.atMostMS()
	ms, least := s.Response.figure(l.figure)
	isKept := ms != nil && *ms <= atMostMS
	if ms == nil && (least == nil || *least <= atMostMS) {
		return NotJudged, name + " falls on a request that failed, and it is unknown after how long"
	}
	is := name + " is at least "
	if ms != nil {
		is, least = name+" is ", ms
	}
	is += exactTime(*least)
	where := "over"
	if isKept {
		where = "within"
	}
	says := fmt.Sprintf("%s, %s %s", is, where, exactTime(atMostMS))
	switch {
	case isBunched(s.Moved, &s.Late, l.figure, atMostMS):
		return NotJudged, says + ", but " + bursts(s.Moved)
	case isKept:
		return Kept, says
	case s.limitedOtherwise() && !s.Service.over(l.figure, atMostMS):
		return NotJudged, says + ", but the generator was the limit of this run: it may be its doing"
	case s.Prompt != nil && !s.Prompt.over(l.figure, atMostMS):
		return NotJudged, says + ", but the generator sent late, and without that it is " + s.Prompt.known(l.figure)
	case s.Unqueued != nil && !s.Unqueued.over(l.figure, atMostMS):
		return NotJudged, fmt.Sprintf("%s, but %s of %s waited for connections of their own clients, and without that it is %s",
			says, grouped(s.Requests.ClientQueued), requests(n), s.Unqueued.known(l.figure))
	}
	return Exceeded, fmt.Sprintf("%s, over the limit of %s", is, exactTime(atMostMS))
}

const mostMoved = 0.02

// isBunched reports whether the load was not that of the log, and lateness is why: more than 2 % of the requests left in
// another 100 ms than that in which they were due, and at the figure the lateness is too long beside the limit. A server
// that waits for nothing else serves a burst late.
func isBunched(moved float64, late *Statistics, figure string, atMostMS float64) bool {
	ms, _ := late.figure(figure)
	if ms == nil { // too few requests, or none of times
		ms = late.Max
	}
	return moved > mostMoved && ms != nil && *ms > max(limitLagMS, limitFraction*atMostMS)
}

func bursts(moved float64) string {
	return fmt.Sprintf("the generator sent late, and %.1f %% of the requests in another 100 ms than that in which they were due: "+
		"the server got bursts that the log does not have", 100*moved)
}

// limitedOtherwise reports whether the generator was the limit, and not by its lateness alone.
func (s *Summary) limitedOtherwise() bool {
	return s.GeneratorLimited && !strings.HasPrefix(s.GeneratorLimitedReason, sentLate)
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
		return NotJudged, fmt.Sprintf("%s, but fewer than %s do not show a share of %s", says, requests(l.fewestRequests()), limit)
	}
	return Kept, says + ", within " + limit
}

// fewestRequests returns how many requests the figure takes.
func (l Limit) fewestRequests() uint64 {
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
	if l.figure == limitErrors && l.percent == 0 || most >= l.fewestRequests() {
		return ""
	}
	return fmt.Sprintf("--fail-over %s will not be judged: it takes %s, and the run has %s at most", l.text, requests(l.fewestRequests()), grouped(most))
}

// figure returns a figure by its name, or, where it is censored, what it is at least.
func (s *Statistics) figure(name string) (ms, least *float64) {
	for _, f := range figures {
		if f.name == name {
			ms = *f.of(s)
		}
	}
	return ms, s.Censored[name]
}

// known returns a figure in words.
func (s *Statistics) known(name string) string {
	if ms, _ := s.figure(name); ms != nil {
		return exactTime(*ms)
	}
	return "unknown"
}

// over reports whether a figure is longer than that.
func (s *Statistics) over(name string, ms float64) bool {
	value, least := s.figure(name)
	return value != nil && *value > ms || value == nil && least != nil && *least > ms
}

func (l Limit) atMostMS() float64 { return float64(l.atMost.Microseconds()) / 1000 }

// exactTime writes milliseconds with all their microseconds, in seconds from 1,000 ms on: a figure that is just over its
// limit must not read like it.
func exactTime(ms float64) string {
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
		if room := l.mayBreak(most); l.broken > room && l.unkeepable == "" && !d.tally.mayBlameBursts(l.Limit) {
			what := "failed"
			if l.figure != limitErrors {
				what = fmt.Sprintf("took over %s or failed", exactTime(l.atMostMS()))
			}
			l.unkeepable = fmt.Sprintf("%s %s, and of the %s that the run has at most, %s may", requests(l.broken), what, grouped(most), grouped(room))
		}
		if l.unkeepable != "" {
			return l.text + ": " + l.unkeepable
		}
	}
	return ""
}

// mayBlameBursts reports whether what breaks a limit so far may come of bursts that the log does not have.
func (t *tally) mayBlameBursts(l Limit) bool {
	if l.figure == limitErrors {
		return false
	}
	late := t.late.statistics()
	return isBunched(t.moved(), &late, l.figure, l.atMostMS())
}

// counted is a limit and the requests that count against it.
type counted struct {
	Limit
	broken     uint64
	unkeepable string // why it cannot be kept
}

func countedLimits(limits []Limit) []counted {
	var all []counted
	for _, l := range limits {
		all = append(all, counted{Limit: l})
	}
	return all
}

// verdicts judges all limits at the end; nil if the run has none.
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
