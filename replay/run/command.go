package run

import (
	"errors"
	"fmt"
	"time"

	"plimsoll/replay/record"
)

type Command struct {
	Logs []string `arg:"" name:"log" help:"Access logs: paths, globs, rotated sets (access.log*), or - for standard input; plain, gz, bz2, xz or zst."`

	Target    string `help:"Base URL to send the requests to, without path. Default: an embedded origin on loopback that serves what the log asks for." placeholder:"URL" group:"Where to"`
	ConnectTo string `help:"Connect here instead of to the target's host, which keeps its name (Host header, SNI, certificate)." placeholder:"HOST:PORT" group:"Where to"`
	Insecure  bool   `help:"Accept any certificate." group:"Where to"`
	Root      string `help:"Folder for the embedded origin's files, on the disk that is to be measured. Default: OUT/origin." placeholder:"DIR" group:"Where to"`

	LogFlags
	LogTime string `help:"Whether the log's times are when requests were received or finished. Default: as the format has it." enum:"auto,received,finished" default:"auto" group:"Reading logs"`

	Speed       string        `help:"Times the recorded pace (1, 10, 0.5), or max: as fast as the server goes (closed loop)." default:"1" group:"Pace"`
	Rate        float64       `help:"Requests per second at even distances, instead of the log's pace." placeholder:"R" group:"Pace"`
	Users       int           `help:"This many concurrent users, each living through one client's visits with their pauses (closed loop)." placeholder:"N" group:"Pace"`
	RampUp      time.Duration `help:"With --users: time over which they arrive. Default: 1 s for each 1,000." placeholder:"D" group:"Pace"`
	Connections int           `help:"With --speed max: connections, each sending its next request when the last is answered. Default: ${default}." default:"64" placeholder:"N" group:"Pace"`
	Burst       bool          `help:"Send requests logged in the same second at once, instead of spread over it." group:"Pace"`
	Seed        int64         `help:"Seed for all that is drawn at random." default:"1" group:"Pace"`

	Duration time.Duration `help:"Send nothing that is due later than this." placeholder:"D" group:"How much"`
	Limit    uint64        `help:"Send at most this many requests." placeholder:"N" group:"How much"`
	Loops    int           `help:"Go through the log this many times; 0: until --duration." default:"1" group:"How much"`
	From     string        `help:"Only requests logged at or after this time: '2026-11-20 10:00:00', RFC 3339, or as in the log." placeholder:"T" group:"How much"`
	To       string        `help:"Only requests logged before this time." placeholder:"T" group:"How much"`
	Include  []string      `help:"Only requests whose target matches one of these regular expressions." placeholder:"RE" sep:"none" group:"How much"`
	Exclude  []string      `help:"No requests whose target matches one of these." placeholder:"RE" sep:"none" group:"How much"`
	Methods  []string      `help:"Methods that are sent. Others than GET and HEAD may change the site; their bodies are empty." default:"GET,HEAD" group:"How much"`

	Header         []string      `help:"Send this header with each request, in place of the log's. An empty value takes it away." placeholder:"'K: V'" sep:"none" group:"Requests"`
	HeaderFile     string        `help:"File of such headers, a line each, readable by you alone: for cookies and other secrets." placeholder:"FILE" group:"Requests"`
	Unconditional  bool          `help:"Send logged 304s and 206s as plain requests, without If-Modified-Since and Range." group:"Requests"`
	Timeout        time.Duration `help:"For one request, from its start to its last byte." default:"30s" group:"Requests"`
	IdleTimeout    time.Duration `help:"Close a client's connection after this time without a request." default:"60s" group:"Requests"`
	MaxConnections int           `help:"Connections open at once. Requests past that wait; they are counted as queued, and their response time runs. At most the limit of open files. Default: ${default}." placeholder:"N" default:"10000" group:"Requests"`
	Route          []string      `help:"Count requests whose target matches as this kind." placeholder:"NAME=RE" sep:"none" group:"Requests"`
	KeepGoing      bool          `help:"Go on when the target no longer accepts connections." group:"Requests"`

	Out        string        `help:"Folder for run directories; OUT/latest is a link to the last one." default:"results" placeholder:"DIR" group:"Results"`
	Backend    *string       `help:"Name of the storage under the site, for reports." placeholder:"NAME" group:"Results"`
	Repeat     *int          `help:"Which repeat of an experiment this run is, from 1." placeholder:"N" group:"Results"`
	Warmup     time.Duration `help:"Mark requests due before this time, and leave them out of the figures." placeholder:"D" group:"Results"`
	GrinderLog bool          `help:"Write The Grinder's data log too." group:"Results"`
	HDRLog     bool          `name:"hdr-log" help:"Write an HdrHistogram log too." group:"Results"`
	JSON       bool          `help:"Print the summary as JSON." group:"Results"`
	Quiet      bool          `help:"No progress." group:"Results"`
}

// Help is printed below the usage of `replay run`.
func (c *Command) Help() string {
	return `Examples:
  replay run access.log                                       against an embedded origin, at the recorded pace
  replay run access.log* --target http://10.0.0.5 --speed 10  a rotated set, ten times as fast
  replay run access.log --target https://shop.example --connect-to 10.0.0.5:443
  replay run access.log --target http://10.0.0.5 --speed max --connections 64
  replay run access.log --target http://10.0.0.5 --users 10000 --duration 10m

Exit codes: 0 the replay is complete; 1 it was interrupted or failed; 2 something asked for is wrong.`
}

// Run replays the logs: the story of a run from its command line to its summary.
func (c *Command) Run(s Streams) error {
	asked, err := c.Check()
	if err != nil {
		return UsageError{err}
	}
	stop, abort, release := onInterrupts()
	defer release()

	replay, err := Prepare(stop, c, asked, s)
	if err != nil {
		return err
	}
	defer replay.Close()

	progress := c.newProgress(s, replay.Dir, replay.traffic)
	status, reason := replay.Go(stop, abort)
	progress.stop()
	summary, err := replay.Dir.Close(status, reason)
	if err == nil {
		err = statusError(status, reason)
	}
	return c.conclude(s, replay.Dir, summary, err)
}

// conclude prints what was measured and where it is.
func (c *Command) conclude(s Streams, dir *record.Dir, summary record.Summary, err error) error {
	if c.JSON {
		if jsonErr := PrintJSON(s.Out, summary); jsonErr != nil {
			return errors.Join(err, jsonErr)
		}
	} else {
		summary.WriteTable(s.Out)
		fmt.Fprintf(s.Out, "\nRun directory: %s\n", dir.Path())
	}
	if err == nil && summary.GeneratorLimited {
		fmt.Fprintf(s.Err, "replay: warning: %s\n", summary.GeneratorLimitedReason)
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
