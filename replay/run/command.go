// Package run is `replay run`: its flags and their checks, and a replay from its logs to its run directory.
package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"plimsoll/replay/record"
)

// Command is `replay run`: its arguments and flags.
type Command struct {
	Logs []string `arg:"" name:"log" help:"Access logs: paths, globs, rotated sets (access.log*), or - for standard input; plain, gz, bz2, xz or zst."`

	Target        string   `help:"Base URL to send the requests to, without path. Default: an embedded origin on loopback that serves the targets of the log." placeholder:"URL" group:"Where to"`
	ConnectTo     string   `help:"Connect to this address. The Host header, SNI and the certificate keep the target's name." placeholder:"HOST:PORT" group:"Where to"`
	Insecure      bool     `help:"Accept any certificate." group:"Where to"`
	TLSResume     bool     `name:"tls-resume" help:"Clients resume their TLS sessions when they connect again, as browsers do." default:"true" negatable:"" group:"Where to"`
	SourceAddress []string `help:"Connect from these addresses of this machine, or from all of a prefix (10.0.0.0/28), each client from one of them. One address has 28,232 ports to a server." placeholder:"ADDR" group:"Where to"`
	Root          string   `help:"Folder for the embedded origin's files, on the disk to measure. Default: OUT/origin." placeholder:"DIR" group:"Where to"`

	LogFlags
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
	MetricsRemote bool          `help:"With --metrics: on an address that other machines reach, too." group:"Results"`
	JSON          bool          `help:"Print the summary as JSON." group:"Results"`
	Quiet         bool          `help:"Show no progress." group:"Results"`

	given map[string]bool // the flags on the command line, by name
}

// AfterApply notes which flags were given: a rate of 0 is a mistake, an absent one is not.
func (c *Command) AfterApply(ctx *kong.Context) error {
	c.given = map[string]bool{}
	for _, part := range ctx.Path {
		if part.Flag != nil {
			c.given[part.Flag.Name] = true
		}
	}
	return nil
}

// Help is printed below the usage of `replay run`.
func (c *Command) Help() string {
	return `Examples:
  replay run access.log                                       against an embedded origin, at the recorded pace
  replay run access.log* --target http://10.0.0.5 --speed 10  a rotated set, ten times as fast
  replay run access.log --target https://shop.example --connect-to 10.0.0.5:443
  replay run access.log --target http://10.0.0.5 --speed max --connections 64
  replay run access.log --target http://10.0.0.5 --users 10000 --duration 10m
  replay run access.log --target http://10.0.0.5 --fail-over p99.9=800ms --fail-over errors=0.1%

Exit codes: 0 the replay is complete, within all limits; 1 it is over one, was interrupted or failed; 2 the command line
or a file is wrong; 3 it is complete, but a limit could not be judged.`
}

// Run replays the logs, from the command line to the summary.
func (c *Command) Run(s Streams) error {
	setup, err := c.Check()
	if err != nil {
		return UsageError{err}
	}
	stop, abort, release := OnInterrupts()
	defer release()

	replay, err := Prepare(stop, c, setup, s)
	if err != nil {
		return err
	}
	defer replay.Close()

	progress := c.newProgress(s, replay.Dir, replay.traffic)
	status, reason := replay.Go(stop, abort)
	InTime(stop, progress.stop)
	summary, err := replay.Dir.Close(status, reason)
	if err == nil {
		err = statusError(summary.Status, summary.Reason)
	}
	if err == nil {
		err = LimitsError(summary.Limits)
	}
	if !InTime(stop, func() { err = c.conclude(s, replay.Dir, summary, err) }) || err == nil && stop.Err() != nil {
		return AnswerNo{ErrInterrupted}
	}
	return err
}

// conclude prints what was measured and where it is.
func (c *Command) conclude(s Streams, dir *record.Dir, summary record.Summary, err error) error {
	if c.JSON {
		if jsonErr := PrintJSON(s.Out, summary); jsonErr != nil {
			return errors.Join(err, jsonErr)
		}
	} else {
		summary.WriteTable(s.Out)
		if !errors.Is(err, record.ErrGone) {
			fmt.Fprintf(s.Out, "\nRun directory: %s\n", Printable(dir.Path()))
		}
	}
	if text := membersDoubt(summary.Members); summary.Status == record.Complete && text != "" {
		warn(s.Err, text)
	}
	if summary.Status == record.Complete && summary.GeneratorLimited {
		warn(s.Err, summary.GeneratorLimitedReason)
	}
	return err
}

func statusError(status record.Status, reason string) error {
	if status == record.Complete {
		return nil
	}
	return AnswerNo{fmt.Errorf("the run is %s: %s", status, reason)}
}

func (c *Command) rampUp() time.Duration {
	if c.RampUp > 0 {
		return c.RampUp
	}
	return time.Duration(c.Users) * time.Millisecond
}
