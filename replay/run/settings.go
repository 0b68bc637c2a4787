// Package run is `replay run`: its flags and their checks, and a replay from its logs to its run directory.
package run

// The flags of `replay run`, their checks, and what of them shapes load, as run.json has it: instances of one run must
// agree on that.

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/forms"
	"plimsoll/replay/record"
	"plimsoll/replay/route"
	"plimsoll/replay/traffic"
)

// Settings are the arguments and flags of `replay run`.
type Settings struct {
	Logs []string `arg:"" name:"log" help:"Access logs: paths, globs, rotated sets (access.log*), or - for standard input; plain, gz, bz2, xz or zst."`

	Target        string   `help:"Base URL to send the requests to, without path. Default: an embedded origin on loopback that serves the targets of the log." placeholder:"URL" group:"Where to"`
	ConnectTo     string   `help:"Connect to this address. The Host header, SNI and the certificate keep the target's name." placeholder:"HOST:PORT" group:"Where to"`
	Insecure      bool     `help:"Accept any certificate." group:"Where to"`
	TLSResume     bool     `name:"tls-resume" help:"Clients resume their TLS sessions when they connect again, as browsers do." default:"true" negatable:"" group:"Where to"`
	SourceAddress []string `help:"Connect from these addresses of this machine, or from all of a prefix (10.0.0.0/28), each client from one of them. One address has 28,232 ports to a server." placeholder:"ADDR" group:"Where to"`
	Root          string   `help:"Folder for the embedded origin's files, on the disk to measure. Default: OUT/origin." placeholder:"DIR" group:"Where to"`

	cli.LogFlags
	Clients string `help:"Who a client is: auto spreads the requests of a proxy's address over as many clients as they take; log: each address with its user agent." enum:"auto,log" default:"auto" group:"Reading logs"`
	LogTime string `help:"Instant of the log's times: when requests were received, or when they were finished. auto: as usual for the format." enum:"auto,received,finished" default:"auto" group:"Reading logs"`

	Speed       string        `help:"Multiple of the recorded pace (1, 10, 0.5), or max: as fast as the server answers (closed loop)." default:"1" group:"Pace"`
	Rate        float64       `help:"Requests per second, evenly spaced, instead of the log's pace." placeholder:"R" group:"Pace"`
	Users       int           `help:"Number of concurrent users, each repeating the visits of the log's clients with their pauses (closed loop)." placeholder:"N" group:"Pace"`
	RampUp      time.Duration `help:"With --users: time over which the users arrive. Default: 1 s per 1,000 users." placeholder:"D" group:"Pace"`
	Connections int           `help:"With --speed max: number of connections. Each sends its next request when the last one is answered. Default: ${default}." default:"64" placeholder:"N" group:"Pace"`
	Burst       bool          `help:"Send requests logged in the same second at once, instead of spreading them over that second." group:"Pace"`
	MaxGap      time.Duration `help:"Longest pause of the log that is kept, in the log's time. Longer ones are shortened to it. 0: all are kept. Default: ${default}." default:"12h" placeholder:"D" group:"Pace"`
	Seed        int64         `help:"Seed of the random numbers." default:"1" group:"Pace"`

	Duration time.Duration `help:"Send no requests that are due later than this." placeholder:"D" group:"How much"`
	Limit    int64         `help:"Send at most this many requests." placeholder:"N" group:"How much"`
	Loops    int           `help:"Replay the log this many times; 0: until --duration." default:"1" group:"How much"`
	From     string        `help:"Only requests logged at or after this time: '2026-11-20 10:00:00', RFC 3339, or as in the log." placeholder:"T" group:"How much"`
	To       string        `help:"Only requests logged before this time." placeholder:"T" group:"How much"`
	Include  []string      `help:"Only requests whose target matches one of these regular expressions." placeholder:"RE" sep:"none" group:"How much"`
	Exclude  []string      `help:"No requests whose target matches one of these." placeholder:"RE" sep:"none" group:"How much"`
	Methods  []string      `help:"Methods to send. Methods other than GET and HEAD may change the site. They carry the body that a recording has of them, else an empty one." default:"GET,HEAD" group:"How much"`

	Header               []string      `help:"Send this header with each request, in place of the log's. An empty value removes it." placeholder:"'K: V'" sep:"none" group:"Requests"`
	Host                 string        `help:"Host header: that of the log (log), also where it is in an absolute URL, or the target's (target). auto: the log's virtual host where it has one, else the target's." enum:"auto,log,target" default:"auto" group:"Requests"`
	HeaderFile           string        `help:"File of such headers, one per line, readable only by you: for cookies and other secrets." placeholder:"FILE" group:"Requests"`
	ClientHeader         []string      `help:"Send the address of the log's client in this header, X-Forwarded-For or X-Real-IP, where the log has one. The site believes it only where it trusts this machine." placeholder:"NAME" group:"Requests"`
	Unconditional        bool          `help:"Send logged 304s and 206s as plain requests, without If-Modified-Since and Range." group:"Requests"`
	Timeout              time.Duration `help:"Time limit of one request, from its start to its last byte; at most 1h." default:"30s" group:"Requests"`
	IdleTimeout          time.Duration `help:"Close a client's connection after this time without a request." default:"60s" group:"Requests"`
	MaxConnections       int           `help:"Connections open at once, at most the limit of open files. Requests beyond that wait: they count as queued, and the wait counts in their response time. Default: ${default}." placeholder:"N" default:"10000" group:"Requests"`
	ConnectionsPerClient int           `help:"Connections of one client with HTTP/1.1, as many as a browser has. Requests beyond that wait for one. Default: ${default}." placeholder:"N" default:"6" group:"Requests"`
	Route                []string      `help:"Count requests whose target matches under this name." placeholder:"NAME=RE" sep:"none" group:"Requests"`
	KeepGoing            bool          `help:"Continue when the target no longer accepts connections." group:"Requests"`

	AllowWrites  bool     `help:"The target is a clone that requests may change. Needed for methods other than GET and HEAD, where it is not on this machine." group:"Requests"`
	ReplaceField []string `help:"Send this value in the fields of this name, a regular expression, of recorded bodies." placeholder:"FIELD=VALUE" sep:"none" group:"Requests"`

	Accounts     string   `help:"Log the log's members in with the accounts of this file, NAME:PASSWORD one per line, readable only by you, and send their requests with cookies of their own." placeholder:"FILE" group:"Members"`
	AllowLogins  bool     `help:"The target is a clone that logins may change. Needed where it is not on this machine." group:"Members"`
	LoginPage    string   `help:"Path of the login form. Default: that of WordPress or XenForo." placeholder:"PATH" group:"Members"`
	MembersMatch []string `help:"Clients with a request whose target matches one of these are members, too." placeholder:"RE" sep:"none" group:"Members"`
	MembersShare float64  `help:"Share of the clients that are members, from 0 to 1, drawn by the seed instead of by what the log shows." placeholder:"S" group:"Members"`

	FailOver    []string      `help:"Limit of this run: p50, p90, p95, p99, p99.9, p99.99 or max of the response time, or errors, the share of requests that failed. Exit code 1 over it, 3 where that cannot be judged." placeholder:"FIGURE=LIMIT" group:"Limits"`
	AbortOnFail bool          `help:"End the run as soon as it cannot keep a limit any more, whatever is still to come." group:"Limits"`
	AbortAfter  time.Duration `help:"With --abort-on-fail: not before this time. Default: ${default}." default:"10s" placeholder:"D" group:"Limits"`

	Out           string        `help:"Folder for run directories; OUT/latest is a link to the last one." default:"results" placeholder:"DIR" group:"Results"`
	Backend       *string       `help:"Name of the storage under the site, for reports." placeholder:"NAME" group:"Results"`
	Repeat        *int          `help:"Number of this repeat of an experiment, from 1." placeholder:"N" group:"Results"`
	Warmup        time.Duration `help:"Mark requests due before this time, and leave them out of the results." placeholder:"D" group:"Results"`
	GrinderLog    bool          `help:"Also write The Grinder's data log." group:"Results"`
	HDRLog        bool          `name:"hdr-log" help:"Also write an HdrHistogram log." group:"Results"`
	Metrics       string        `help:"Show the run to Prometheus while it lasts, at this address under /metrics." placeholder:"HOST:PORT" group:"Results"`
	MetricsRemote bool          `help:"With --metrics: allow an address that other machines can reach." group:"Results"`
	JSON          bool          `help:"Print the summary as JSON." group:"Results"`
	cli.ShowFlags

	given map[string]bool // the flags on the command line, by name
}

// AfterApply notes which flags were given: a rate of 0 is a mistake, an absent one is not.
func (c *Settings) AfterApply(ctx *kong.Context) error {
	c.given = map[string]bool{}
	for _, part := range ctx.Path {
		if part.Flag != nil {
			c.given[part.Flag.Name] = true
		}
	}
	return nil
}

func (c *Settings) rampUp() time.Duration {
	if c.RampUp > 0 {
		return c.RampUp
	}
	return time.Duration(c.Users) * time.Millisecond
}

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
func (c *Settings) Check() (*Setup, error) {
	s := &Setup{plan: traffic.Plan{
		Rate: c.Rate, Users: c.Users > 0, Burst: c.Burst, Pause: c.MaxGap, Seed: c.Seed, Loops: c.Loops,
		Limit: uint64(c.Limit), Until: c.Duration, Unconditional: c.Unconditional, Host: c.Host, NameClients: len(c.ClientHeader) > 0,
	}}
	var wrong cli.Problems
	var err error
	s.plan.Speed, err = parseSpeed(c.Speed)
	wrong.Note(err)
	c.checkNumbers(&wrong)
	wrong.CheckNames(c.Backend, c.Repeat)
	c.checkPace(&wrong)
	wrong.Note(c.checkFiles())
	if c.Target != "" || c.given["target"] {
		wrong.Note(target.Validate(c.Target, c.ConnectTo))
	}
	wrong.Note(cli.CheckOut(c.Out))
	wrong.Note(c.checkMetrics())
	s.plan.From, s.plan.To = wrong.Period(c.From, c.To)
	s.sources, err = target.ParseSources(c.SourceAddress)
	wrong.Note(err)
	wrong.Note(c.checkPorts(s.sources))
	s.plan.Include = wrong.Patterns("--include", c.Include)
	s.plan.Exclude = wrong.Patterns("--exclude", c.Exclude)
	s.plan.Methods = c.methods(&wrong)
	s.headers, err = cli.ReadHeaders(c.Header, c.HeaderFile)
	wrong.Note(err)
	if err = s.headers.NameClients(c.ClientHeader); err != nil {
		wrong.Note(fmt.Errorf("--client-header: %w", err))
	}
	s.membership = c.members(s, &wrong)
	s.plan.Forms, err = forms.ParseRules(c.ReplaceField)
	wrong.Note(err)
	s.routes, err = route.ParseRules(c.Route)
	wrong.Note(err)
	s.limits = c.limits(&wrong)
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
func (c *Settings) checkNumbers(wrong *cli.Problems) {
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
		wrong.NoteIf(!(n.value >= n.least) || n.most > 0 && n.value > n.most,
			"--%s: %v is out of range, give %s%s", n.flag, n.value, bounds, n.unit)
	}
}

// checkPace refuses flags that contradict each other.
func (c *Settings) checkPace(wrong *cli.Problems) {
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
	wrong.NoteIf(len(chosen) > 1, "%s cannot be combined: give one of them", strings.Join(chosen, " and "))
	wrong.NoteIf(c.given["connections"] && c.Speed != "max", "--connections is only for --speed max: leave it out, or give --max-connections")
	wrong.NoteIf(c.given["connections-per-client"] && c.Speed == "max",
		"--connections-per-client is not for --speed max, whose connections --connections counts: leave it out")
	wrong.NoteIf(c.given["ramp-up"] && c.Users == 0, "--ramp-up is only for --users: leave it out")
	wrong.NoteIf(c.Loops == 0 && c.Duration == 0, "--loops 0 never ends: give --duration too")
	wrong.NoteIf(c.Duration > 0 && c.Warmup >= c.Duration, "--warmup %v leaves nothing of --duration %v: give a shorter one", c.Warmup, c.Duration)
	wrong.NoteIf(c.ConnectTo != "" && c.Target == "", "--connect-to needs --target")
}

// methodName matches the method of a request.
var methodName = regexp.MustCompile(`^[A-Z]+(-[A-Z]+)*$`)

// methods reads --methods.
func (c *Settings) methods(wrong *cli.Problems) map[string]bool {
	methods := map[string]bool{}
	for _, method := range c.Methods {
		name := strings.ToUpper(strings.TrimSpace(method))
		wrong.NoteIf(!methodName.MatchString(name), "--methods: %q is not a method: give names separated by commas, such as GET,HEAD", method)
		methods[name] = true
	}
	return methods
}

// loadSetting is a setting that shapes load, as run.json has it: with its unit in its name, made of some flags.
type loadSetting struct {
	name  string
	flags []string // fields of Settings
	value func(g loadInputs) any
}

// loadInputs are what settings are made of.
type loadInputs struct {
	*Settings
	setup *Setup
	logs  *traffic.Logs
}

// loadSettings are all settings that shape load. Each flag is in one of them, or in notLoad.
var loadSettings = []loadSetting{
	{"logs", []string{"Logs"}, func(g loadInputs) any { return g.logs.Contents() }},
	{"log_format", []string{"Format", "Config"}, func(g loadInputs) any { return g.logs.Format.Spec().Log }},
	{"log_date_format", []string{"DateFormat"}, func(g loadInputs) any { return g.logs.Format.Spec().Date }},
	{"log_time_format", []string{"TimeFormat"}, func(g loadInputs) any { return g.logs.Format.Spec().Time }},
	{"log_datetime_format", []string{"DatetimeFormat"}, func(g loadInputs) any { return g.logs.Format.Spec().DateTime }},
	{"log_time_zone", []string{"TZ"}, func(g loadInputs) any { return g.logs.Format.Spec().TZ }},
	{"strict_hosts", []string{"StrictHosts"}, func(g loadInputs) any { return g.logs.Format.Spec().StrictHosts }},
	{"log_times_are", []string{"LogTime"}, func(g loadInputs) any { return g.logs.TimesAre() }},
	{"clients", []string{"Clients"}, func(g loadInputs) any { return describeSpread(g.setup.census) }},
	{"methods", []string{"Methods"}, func(g loadInputs) any { return slices.Sorted(maps.Keys(g.setup.plan.Methods)) }},
	{"replace_fields", []string{"ReplaceField"}, func(g loadInputs) any { return g.setup.plan.Forms.Names() }},
	{"include", []string{"Include"}, func(g loadInputs) any { return texts(g.Include) }},
	{"exclude", []string{"Exclude"}, func(g loadInputs) any { return texts(g.Exclude) }},
	{"from", []string{"From"}, func(g loadInputs) any { return record.Instant{Time: g.setup.plan.From} }},
	{"to", []string{"To"}, func(g loadInputs) any { return record.Instant{Time: g.setup.plan.To} }},
	{"limit", []string{"Limit"}, func(g loadInputs) any { return orNull(g.Limit) }},
	{"loops", []string{"Loops"}, func(g loadInputs) any { return orNull(g.Loops) }},
	{"duration_s", []string{"Duration"}, func(g loadInputs) any { return orNull(g.Duration.Seconds()) }},
	{"warmup_s", []string{"Warmup"}, func(g loadInputs) any { return g.Warmup.Seconds() }},
	{"speed", []string{"Speed"}, func(g loadInputs) any { return orNull(g.setup.plan.Speed) }},
	{"rate_per_s", []string{"Rate"}, func(g loadInputs) any { return orNull(g.Rate) }},
	{"users", []string{"Users"}, func(g loadInputs) any { return orNull(g.Users) }},
	{"ramp_up_s", []string{"RampUp"}, func(g loadInputs) any { return onlyIf(g.Users > 0, g.rampUp().Seconds()) }},
	{"connections", []string{"Connections"}, func(g loadInputs) any { return onlyIf(g.Speed == "max", g.Connections) }},
	{"max_gap_s", []string{"MaxGap"}, func(g loadInputs) any { return g.MaxGap.Seconds() }},
	{"burst", []string{"Burst"}, func(g loadInputs) any { return g.Burst }},
	{"seed", []string{"Seed"}, func(g loadInputs) any { return g.Seed }},
	{"headers", []string{"Header", "HeaderFile"}, func(g loadInputs) any { return g.setup.headers.Digests(record.Digest) }},
	{"client_headers", []string{"ClientHeader"}, func(g loadInputs) any { return strings.Fields(strings.ToLower(strings.Join(g.ClientHeader, " "))) }},
	{"host", []string{"Host"}, func(g loadInputs) any { return g.Host }},
	{"accounts", []string{"Accounts"}, func(g loadInputs) any { return g.setup.membership.facts() }},
	{"members_match", []string{"MembersMatch"}, func(g loadInputs) any { return texts(g.MembersMatch) }},
	{"members_share", []string{"MembersShare"}, func(g loadInputs) any { return orNull(g.MembersShare) }},
	{"unconditional", []string{"Unconditional"}, func(g loadInputs) any { return g.Unconditional }},
	{"timeout_s", []string{"Timeout"}, func(g loadInputs) any { return g.Timeout.Seconds() }},
	{"idle_timeout_s", []string{"IdleTimeout"}, func(g loadInputs) any { return g.IdleTimeout.Seconds() }},
	{"tls_resume", []string{"TLSResume"}, func(g loadInputs) any { return g.TLSResume }},
	{"max_connections", []string{"MaxConnections"}, func(g loadInputs) any { return g.maxConnections() }},
	{"connections_per_client", []string{"ConnectionsPerClient"}, func(g loadInputs) any { return onlyIf(g.Speed != "max", g.ConnectionsPerClient) }},
}

// notLoad are the flags that shape no load, by why they do not.
var notLoad = map[string][]string{
	"where the load goes, and what proves that it is there": {"Target", "ConnectTo", "Insecure", "SourceAddress", "Root", "LoginPage", "AllowLogins", "AllowWrites"},
	"names":                            {"Backend", "Repeat", "Route"},
	"what is written":                  {"Out", "GrinderLog", "HDRLog"},
	"what is shown":                    {"JSON", "Progress", "Quiet", "Metrics", "MetricsRemote"},
	"when to give up, before any load": {"AllowRejects", "AllowDuplicates"},
	"when to give up, without a target: then the run has failed":       {"KeepGoing"},
	"what is judged, and when to give up: then the run is interrupted": {"FailOver", "AbortOnFail", "AbortAfter"},
}

// load returns all that shapes the load of a run. It is the same for all instances that share one.
func (c *Settings) load(s *Setup, l *traffic.Logs) (*record.Load, error) {
	settings := map[string]any{"program": "replay", "program_version": cli.Version}
	for _, one := range loadSettings {
		settings[one.name] = one.value(loadInputs{c, s, l})
	}
	return record.NewLoad(settings)
}

// describeSpread returns whether clients are the log's own, or how many stand for proxies.
func describeSpread(c traffic.Census) string {
	if c.Over == 0 {
		return "log"
	}
	return fmt.Sprintf("proxies' spread over %d", c.Over)
}

// orNull returns null for a flag that was not given.
func orNull[T comparable](value T) any {
	var none T
	return onlyIf(value != none, value)
}

// onlyIf returns null for a flag that says nothing beside the others.
func onlyIf(says bool, value any) any {
	if !says {
		return nil
	}
	return value
}

// texts returns a list that is [] in JSON where it is empty.
func texts(list []string) []string { return append([]string{}, list...) }
