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
	figure  string // a key of Statistics, or limitErrors
	q       quantile
	atMost  time.Duration
	percent float64 // of limitErrors
}

const (
	limitErrors = "errors"
	limitMax    = "max"
)

// limitFigures are the figures that have limits, in the order in which they are listed.
var limitFigures = []struct {
	name string
	q    quantile
}{
	{"p50", p50}, {"p90", p90}, {"p95", p95}, {"p99", p99}, {"p99.9", p999}, {"p99.99", p9999}, {limitMax, quantileUnit}, {limitErrors, 0},
}

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
	at := slices.IndexFunc(limitFigures, func(f struct {
		name string
		q    quantile
	}) bool {
		return f.name == l.figure
	})
	if at < 0 {
		var names []string
		for _, f := range limitFigures {
			names = append(names, f.name)
		}
		return l, fmt.Errorf("%q: %q is not a figure: give one of %s, such as p99.9=800ms or errors=0.1%%", text, l.figure, strings.Join(names, ", "))
	}
	l.q, l.text = limitFigures[at].q, l.figure+"="+value
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
		return !r.neverSent()
	}
	late := uint64(r.LagUS)
	if r.Flags&Queued != 0 && r.Flags&ClientQueued == 0 {
		late = min(uint64(r.LateUS), late)
	}
	return l.figure != limitErrors && r.ResponseUS()-late > uint64(l.atMost.Microseconds())
}

// room returns how many of n requests may break the limit.
func (l Limit) room(n uint64) uint64 {
	if l.figure == limitErrors {
		return uint64(l.share() * float64(n))
	}
	return n - l.q.rank(n)
}
