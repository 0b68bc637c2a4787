package run

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/replay/engine"
	"plimsoll/replay/record"
	"plimsoll/replay/route"
	"plimsoll/replay/traffic"
)

// Asked is a checked command line.
type Asked struct {
	Shard   *record.Shard // which of several instances this one is; nil: the only one
	StartAt time.Time     // when the clock starts; zero: when all is ready

	plan    traffic.Plan
	headers *engine.Headers
	routes  []route.Rule
}

// Check looks at everything that was asked for and reports all that is wrong at once.
func (c *Command) Check() (*Asked, error) {
	a := &Asked{plan: traffic.Plan{
		Rate: c.Rate, Users: c.Users > 0, Burst: c.Burst, Seed: c.Seed, Loops: c.Loops, Limit: c.Limit, Until: c.Duration,
		Methods: map[string]bool{}, Unconditional: c.Unconditional,
	}}
	var wrong []error
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	var err error
	a.plan.Speed, err = parseSpeed(c.Speed)
	note(err)
	note(c.checkNumbers())
	note(c.checkName())
	note(c.checkPace())
	note(c.checkFiles())
	a.plan.From, err = parseInstant("--from", c.From)
	note(err)
	a.plan.To, err = parseInstant("--to", c.To)
	note(err)
	if !a.plan.From.IsZero() && !a.plan.To.IsZero() && !a.plan.From.Before(a.plan.To) {
		note(errors.New("--from is not before --to"))
	}
	a.plan.Include, err = compileAll("--include", c.Include)
	note(err)
	a.plan.Exclude, err = compileAll("--exclude", c.Exclude)
	note(err)
	for _, method := range c.Methods {
		a.plan.Methods[strings.ToUpper(strings.TrimSpace(method))] = true
	}
	a.headers, err = c.headers()
	note(err)
	a.routes, err = route.ParseRules(c.Route)
	note(err)
	return a, errors.Join(wrong...)
}

// Divide gives this instance its share of the clients.
func (a *Asked) Divide(share traffic.Share, shard record.Shard) {
	a.plan.Share = share
	a.Shard = &shard
}

func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return 0, nil
	}
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || !(speed > 0) || speed > 1e6 {
		return 0, fmt.Errorf("--speed %q: give a number over 0 (1 is the recorded pace, 10 ten times as fast, 0.5 half), or max", text)
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

// checkName looks at what the run is called in reports.
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
		return fmt.Errorf("%s contradict each other: give one", strings.Join(chosen, " and "))
	case c.Loops == 0 && c.Duration == 0:
		return errors.New("--loops 0 goes on for ever: give --duration too")
	}
	return nil
}

func compileAll(flag string, texts []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	var wrong []error
	for _, text := range texts {
		re, err := regexp.Compile(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s %q is no regular expression: %w", flag, text, err))
			continue
		}
		out = append(out, re)
	}
	return out, errors.Join(wrong...)
}

// instantLayouts are how --from and --to may be written; those without an offset are UTC.
var instantLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", "02/Jan/2006:15:04:05 -0700"}

func parseInstant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, strings.Trim(text, "[]")); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is no time: write it as '2026-11-20 10:00:00' (UTC), 2026-11-20T10:00:00+01:00, or as in the log", flag, text)
}

// secretHeaders are not taken from the command line, where every user of the machine can read them.
var secretHeaders = regexp.MustCompile(`(?i)^\s*(authorization|proxy-authorization|cookie)\s*:\s*\S`)

// headers reads --header and --header-file.
func (c *Command) headers() (*engine.Headers, error) {
	for _, line := range c.Header {
		if secretHeaders.MatchString(line) {
			name, _, _ := strings.Cut(line, ":")
			return nil, fmt.Errorf("--header %s: would show a secret in the list of processes; put the line into a file that only you can read, and give --header-file", name)
		}
	}
	lines := slices.Clone(c.Header)
	if c.HeaderFile != "" {
		more, err := readHeaderFile(c.HeaderFile)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return engine.ParseHeaders(lines)
}

func readHeaderFile(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--header-file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("--header-file %s can be read by others: chmod 600 it", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--header-file: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
