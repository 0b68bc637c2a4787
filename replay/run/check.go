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

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/forms"
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
	sources target.Sources
	routes  []route.Rule

	census     traffic.Census
	membership *membership // nil: all clients are guests
	limits     []record.Limit
}

// Check reads the flags and reports everything that is wrong with them at once.
func (c *Command) Check() (*Setup, error) {
	s := &Setup{plan: traffic.Plan{
		Rate: c.Rate, Users: c.Users > 0, Burst: c.Burst, Pause: c.MaxGap, Seed: c.Seed, Loops: c.Loops,
		Limit: uint64(c.Limit), Until: c.Duration, Unconditional: c.Unconditional, Host: c.Host, NameClients: len(c.ClientHeader) > 0,
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
	note(c.checkTarget())
	note(c.checkOut())
	note(c.checkMetrics())
	s.plan.From, err = parseInstant("--from", c.From)
	note(err)
	s.plan.To, err = parseInstant("--to", c.To)
	note(err)
	if !s.plan.From.IsZero() && !s.plan.To.IsZero() && !s.plan.From.Before(s.plan.To) {
		note(errors.New("--from is not before --to"))
	}
	s.sources, err = target.ParseSources(c.SourceAddress)
	note(err)
	note(c.checkPorts(s.sources))
	s.plan.Include, err = compileAll("--include", c.Include)
	note(err)
	s.plan.Exclude, err = compileAll("--exclude", c.Exclude)
	note(err)
	s.plan.Methods, err = c.methods()
	note(err)
	s.headers, err = c.headers()
	note(err)
	if err = s.headers.NameClients(c.ClientHeader); err != nil {
		note(fmt.Errorf("--client-header: %w", err))
	}
	s.membership, err = c.members(s)
	note(err)
	s.plan.Forms, err = forms.ParseRules(c.ReplaceField)
	note(err)
	s.routes, err = route.ParseRules(c.Route)
	note(err)
	s.limits, err = c.limits()
	note(err)
	return s, errors.Join(wrong...)
}

// Divide gives this instance its share of the clients.
func (s *Setup) Divide(share traffic.Share, shard record.Shard) {
	s.plan.Share = share
	s.Shard = &shard
}

// The speeds and rates that a replay can hold. Beyond them instants would lie centuries ahead, or all at once.
const (
	slowest = 0.0001
	fastest = 1e6
)

func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return 0, nil
	}
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || !(speed >= slowest && speed <= fastest) {
		return 0, fmt.Errorf("--speed %q: give a number from %v to %.f (1 is the recorded pace, 10 is ten times as fast, 0.5 is half as fast), or max",
			text, slowest, fastest)
	}
	return speed, nil
}

// checkNumbers refuses what is out of range. A flag that was not given and is 0 says nothing.
func (c *Command) checkNumbers() error {
	var wrong []error
	for _, n := range []struct {
		flag        string
		value       float64
		least, most float64 // most 0: no bound
		unit        string
	}{
		{"rate", c.Rate, slowest, fastest, " requests a second"},
		{"users", float64(c.Users), 1, 0, ""},
		{"connections", float64(c.Connections), 1, 0, ""},
		{"max-connections", float64(c.MaxConnections), 1, 0, ""},
		{"connections-per-client", float64(c.ConnectionsPerClient), 1, 0, ""},
		{"loops", float64(c.Loops), 0, 0, ""},
		{"limit", float64(c.Limit), 1, 0, ""},
		{"max-gap", c.MaxGap.Seconds(), 0, 0, " seconds"},
		{"duration", c.Duration.Seconds(), 0.001, 0, " seconds"},
		{"warmup", c.Warmup.Seconds(), 0, 0, " seconds"},
		{"ramp-up", c.RampUp.Seconds(), 0, 0, " seconds"},
		{"timeout", c.Timeout.Seconds(), 0.001, 3600, " seconds"}, // a record holds 71 minutes
		{"idle-timeout", c.IdleTimeout.Seconds(), 0.001, 0, " seconds"},
		{"abort-after", c.AbortAfter.Seconds(), 0, 0, " seconds"},
	} {
		if n.value == 0 && !c.given[n.flag] {
			continue
		}
		bounds := fmt.Sprintf("at least %v", n.least)
		if n.most > 0 {
			bounds = fmt.Sprintf("%v to %.f", n.least, n.most)
		}
		if !(n.value >= n.least) || n.most > 0 && n.value > n.most {
			wrong = append(wrong, fmt.Errorf("--%s: %v is out of range, give %s%s", n.flag, n.value, bounds, n.unit))
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
	var wrong []error
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{len(chosen) > 1, strings.Join(chosen, " and ") + " cannot be combined: give one of them"},
		{c.given["connections"] && c.Speed != "max", "--connections is only for --speed max: leave it out, or give --max-connections"},
		{c.given["connections-per-client"] && c.Speed == "max", "--connections-per-client is not for --speed max, whose connections --connections counts: leave it out"},
		{c.given["ramp-up"] && c.Users == 0, "--ramp-up is only for --users: leave it out"},
		{c.Loops == 0 && c.Duration == 0, "--loops 0 never ends: give --duration too"},
		{c.Duration > 0 && c.Warmup >= c.Duration, fmt.Sprintf("--warmup %v leaves nothing of --duration %v: give a shorter one", c.Warmup, c.Duration)},
		{c.ConnectTo != "" && c.Target == "", "--connect-to needs --target"},
	} {
		if rule.broken {
			wrong = append(wrong, errors.New(rule.says))
		}
	}
	return errors.Join(wrong...)
}

// methodName matches the method of a request.
var methodName = regexp.MustCompile(`^[A-Z]+(-[A-Z]+)*$`)

// methods reads --methods.
func (c *Command) methods() (map[string]bool, error) {
	methods := map[string]bool{}
	var wrong []error
	for _, method := range c.Methods {
		name := strings.ToUpper(strings.TrimSpace(method))
		if !methodName.MatchString(name) {
			wrong = append(wrong, fmt.Errorf("--methods: %q is not a method: give names separated by commas, such as GET,HEAD", method))
		}
		methods[name] = true
	}
	return methods, errors.Join(wrong...)
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
