package run

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
	"plimsoll/replay/route"
	"plimsoll/replay/traffic"
)

// Setup is a command line, checked and read.
type Setup struct {
	Shard   *record.Shard // which of several instances this one is; nil: the only one
	StartAt time.Time     // when the clock starts; zero: when all is ready

	plan    traffic.Plan
	headers *wire.Headers
	routes  []route.Rule
}

// Check reads the flags and reports everything that is wrong with them at once.
func (c *Command) Check() (*Setup, error) {
	s := &Setup{plan: traffic.Plan{
		Rate: c.Rate, Users: c.Users > 0, Burst: c.Burst, Pause: c.MaxGap, Seed: c.Seed, Loops: c.Loops, Limit: c.Limit, Until: c.Duration,
		Methods: map[string]bool{}, Unconditional: c.Unconditional,
	}}
	var wrong []error
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	var err error
	s.plan.Speed, err = parseSpeed(c.Speed)
	note(err)
	note(c.checkNumbers())
	note(c.checkName())
	note(c.checkPace())
	note(c.checkFiles())
	s.plan.From, err = parseInstant("--from", c.From)
	note(err)
	s.plan.To, err = parseInstant("--to", c.To)
	note(err)
	if !s.plan.From.IsZero() && !s.plan.To.IsZero() && !s.plan.From.Before(s.plan.To) {
		note(errors.New("--from is not before --to"))
	}
	s.plan.Include, err = compileAll("--include", c.Include)
	note(err)
	s.plan.Exclude, err = compileAll("--exclude", c.Exclude)
	note(err)
	for _, method := range c.Methods {
		s.plan.Methods[strings.ToUpper(strings.TrimSpace(method))] = true
	}
	s.headers, err = c.headers()
	note(err)
	s.routes, err = route.ParseRules(c.Route)
	note(err)
	return s, errors.Join(wrong...)
}

// Divide gives this instance its share of the clients.
func (s *Setup) Divide(share traffic.Share, shard record.Shard) {
	s.plan.Share = share
	s.Shard = &shard
}

func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return 0, nil
	}
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || !(speed > 0) || speed > 1e6 {
		return 0, fmt.Errorf("--speed %q: give a number above 0 (1 is the recorded pace, 10 is ten times as fast, 0.5 is half as fast), or max", text)
	}
	return speed, nil
}

func (c *Command) checkNumbers() error {
	var wrong []error
	for _, n := range []struct {
		flag  string
		value float64
		least float64
	}{
		{"--rate", c.Rate, 0},
		{"--users", float64(c.Users), 0},
		{"--connections", float64(c.Connections), 1},
		{"--max-connections", float64(c.MaxConnections), 1},
		{"--loops", float64(c.Loops), 0},
		{"--max-gap", c.MaxGap.Seconds(), 0},
		{"--duration", c.Duration.Seconds(), 0},
		{"--warmup", c.Warmup.Seconds(), 0},
		{"--ramp-up", c.RampUp.Seconds(), 0},
		{"--timeout", c.Timeout.Seconds(), 0.001},
		{"--idle-timeout", c.IdleTimeout.Seconds(), 0.001},
	} {
		if !(n.value >= n.least) || n.value > 1e12 {
			wrong = append(wrong, fmt.Errorf("%s: %v is out of range, give at least %v", n.flag, n.value, n.least))
		}
	}
	return errors.Join(wrong...)
}

// checkName checks the names that the run has in reports.
func (c *Command) checkName() error {
	var wrong []error
	if c.Backend != nil && (*c.Backend == "" || utf8.RuneCountInString(*c.Backend) > 80) {
		wrong = append(wrong, errors.New("--backend: give a name of 1 to 80 characters"))
	}
	if c.Repeat != nil && *c.Repeat < 1 {
		wrong = append(wrong, fmt.Errorf("--repeat: %d is out of range, give at least 1", *c.Repeat))
	}
	return errors.Join(wrong...)
}

// checkPace refuses flags that contradict each other.
func (c *Command) checkPace() error {
	var chosen []string
	for flag, set := range map[string]bool{"--speed": c.Speed != "1", "--rate": c.Rate > 0} {
		if set {
			chosen = append(chosen, flag)
		}
	}
	if c.Users > 0 && (c.Speed == "max" || c.Rate > 0) {
		chosen = append(chosen, "--users")
	}
	slices.Sort(chosen)
	switch {
	case len(chosen) > 1:
		return fmt.Errorf("%s cannot be combined: give one of them", strings.Join(chosen, " and "))
	case c.Loops == 0 && c.Duration == 0:
		return errors.New("--loops 0 never ends: give --duration too")
	}
	return nil
}

func compileAll(flag string, texts []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	var wrong []error
	for _, text := range texts {
		re, err := regexp.Compile(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s %q is not a regular expression: %w", flag, text, err))
			continue
		}
		out = append(out, re)
	}
	return out, errors.Join(wrong...)
}

// instantLayouts are how --from and --to may be written; those without an offset are UTC.
var instantLayouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", "02/Jan/2006:15:04:05 -0700",
}

func parseInstant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, strings.Trim(text, "[]")); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is not a time: write it as '2026-11-20 10:00:00' (UTC), 2026-11-20T10:00:00+01:00, or as in the log",
		flag, text)
}
