package commands

// `replay import`: what a log with durations says was served becomes a run directory.

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
	"plimsoll/replay/redact"
	"plimsoll/replay/route"
	"plimsoll/replay/traffic"
)

// Import is `replay import`: what a log with durations says was served becomes a run directory.
type Import struct {
	Logs []string `arg:"" name:"log" help:"Access logs: paths, globs, rotated sets (access.log*), or - for standard input; plain, gz, bz2, xz or zst."`

	cli.LogFlags
	LogTime      string `help:"Instant of the log's times: when requests were received, or when they were finished. auto: as usual for the format." enum:"auto,received,finished" default:"auto" group:"Reading logs"`
	AllowUntimed bool   `help:"Continue when more than 10 % of the requests have no duration. They are left out." group:"Reading logs"`

	From    string   `help:"Only requests that began at or after this time: '2026-11-20 10:00:00', RFC 3339, or as in the log." placeholder:"T" group:"How much"`
	To      string   `help:"Only requests that began before this time." placeholder:"T" group:"How much"`
	Include []string `help:"Only requests whose target matches one of these regular expressions." placeholder:"RE" sep:"none" group:"How much"`
	Exclude []string `help:"No requests whose target matches one of these." placeholder:"RE" sep:"none" group:"How much"`
	Route   []string `help:"Count requests whose target matches under this name." placeholder:"NAME=RE" sep:"none" group:"How much"`

	Timeout time.Duration `help:"Shortest response time that a failed request (429, 500 and above) counts as: the server's own time-out." default:"60s" group:"Results"`
	Seed    int64         `help:"Seed of the random numbers that spread requests over their second." default:"1" group:"Results"`

	Out      string  `help:"Folder for run directories; OUT/latest is a link to the last one." default:"results" placeholder:"DIR" group:"Results"`
	Scenario string  `help:"What to call the scenario. Default: ${default}." default:"accesslog" placeholder:"NAME" group:"Results"`
	Target   string  `help:"Base URL of the site, for the record: the log does not have it." placeholder:"URL" group:"Results"`
	Backend  *string `help:"Name of the storage under the site, for reports." placeholder:"NAME" group:"Results"`
	JSON     bool    `help:"Print what was imported as JSON." group:"Results"`
	cli.ShowFlags
}

// Help is printed below the usage of `replay import`.
func (c *Import) Help() string {
	return `Examples:
  replay import access.log* --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T'     nginx combined and $request_time
  replay import access.log --from '2026-11-01' --to '2026-11-08' --backend sata    the week before the move
  replay import access.log --target https://shop.example

Exit codes: 0 the log is imported; 1 it was interrupted or failed; 2 the command line or a file is wrong.`
}

// maxUntimedShare is the part of the requests that may have no duration without --allow-untimed.
const maxUntimedShare = 0.10

// scenarioName is what plimsoll's other imports take, too.
var scenarioName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`)

// Run imports the logs.
func (c *Import) Run(s cli.Streams) error {
	plan, routes, err := c.check()
	if err != nil {
		return cli.Usage(err)
	}
	stop, _, release := cli.OnInterrupts()
	defer release()
	logs, err := c.OpenLogs(stop, s, c.Logs, 0, c.LogTime, c.ShowsProgress(s))
	if err != nil {
		return err
	}
	defer logs.Close()
	if err := c.checkTimed(logs); err != nil {
		return cli.Usage(err)
	}
	dir, err := c.createDir(plan, logs)
	if err != nil {
		return cli.Usage(err)
	}
	names := route.New(routes)
	dir.SetRoutes(names.Names)
	served := traffic.New(plan, logs, dir, names).Imported()
	err = c.fill(stop, s, dir, logs, served)
	return c.conclude(s, dir, logs, served, err)
}

// check reads the flags and reports everything that is wrong with them at once.
func (c *Import) check() (plan traffic.Plan, routes []route.Rule, err error) {
	var wrong cli.Problems
	plan.Seed = c.Seed
	plan.From, plan.To = wrong.Period(c.From, c.To)
	plan.Include = wrong.Patterns("--include", c.Include)
	plan.Exclude = wrong.Patterns("--exclude", c.Exclude)
	routes, err = route.ParseRules(c.Route)
	wrong.Note(err)
	wrong.Note(cli.CheckOut(c.Out))
	wrong.CheckNames(c.Backend, nil)
	wrong.NoteIf(!scenarioName.MatchString(c.Scenario), "--scenario %q: use up to 60 letters, digits, '-' and '_'", c.Scenario)
	wrong.NoteIf(c.Timeout < time.Millisecond || c.Timeout > time.Hour, "--timeout: %v is out of range, give 1ms to 1h", c.Timeout)
	to, err := url.Parse(c.Target)
	wrong.NoteIf(c.Target != "" && (err != nil || to.Host == "" || to.User != nil),
		"--target must be a base URL without an account, such as https://shop.example")
	return plan, routes, errors.Join(wrong...)
}

// checkTimed refuses a log that does not say how long its requests took.
func (c *Import) checkTimed(l *traffic.Logs) error {
	valid, timed := l.Totals.Valid, l.Totals.Timed
	const how = "write the log with it ($request_time of nginx, %D of Apache), and name it in --format (%T, %D, %L or %n); " +
		"see docs/log-formats.md"
	if timed == 0 {
		return fmt.Errorf("no request of the log has a duration, as it is read by the format %q: %s", l.Format.Name(), how)
	}
	untimed := float64(valid-timed) / float64(valid)
	if untimed <= maxUntimedShare || c.AllowUntimed {
		return nil
	}
	return fmt.Errorf("%.3g %% of the requests have no duration (%d of %d): %s; or give --allow-untimed to leave them out",
		100*untimed, valid-timed, valid, how)
}

// createDir makes the run directory.
func (c *Import) createDir(plan traffic.Plan, l *traffic.Logs) (*record.Dir, error) {
	load, err := c.load(plan, l)
	if err != nil {
		return nil, err
	}
	first, _ := l.Totals.WholeSpan()
	path, err := record.FreePath(c.Out, record.DirName(time.Unix(0, first), c.Scenario, c.Logs[0]))
	if err != nil {
		return nil, err
	}
	dir, err := record.Create(path, record.Run{
		Scenario: c.Scenario, Backend: c.Backend, Target: record.Target{URL: c.Target},
		Command: redact.Args(os.Args), Seed: c.Seed, Loop: record.Open, Speed: "1", Logs: l.Facts(),
		Program: record.Program{Name: record.AccessLog, Version: cli.Version},
		Host:    record.Host{Hostname: "unknown"}, // visitors were where they were; this machine only reads the log
		Load:    load,
	}, record.Options{})
	if err != nil {
		return nil, err
	}
	for _, r := range l.Rejects {
		dir.Reject(r)
	}
	return dir, nil
}

// load returns what chose the requests, so that two imports can be seen to be of one log.
func (c *Import) load(plan traffic.Plan, l *traffic.Logs) (*record.Load, error) {
	spec := l.Format.Spec()
	return record.NewLoad(map[string]any{
		"program": record.AccessLog, "program_version": cli.Version, "logs": l.Contents(), "log_format": spec.Log,
		"log_date_format": spec.Date, "log_time_format": spec.Time, "log_datetime_format": spec.DateTime, "log_time_zone": spec.TZ,
		"strict_hosts": spec.StrictHosts, "log_times_are": l.TimesAre(), "include": append([]string{}, c.Include...), "exclude": append([]string{}, c.Exclude...),
		"from": record.Instant{Time: plan.From}, "to": record.Instant{Time: plan.To}, "seed": c.Seed, "timeout_s": c.Timeout.Seconds(),
	})
}

// fill writes the records. The first of them sets the start of the run.
func (c *Import) fill(ctx context.Context, s cli.Streams, dir *record.Dir, l *traffic.Logs, served *traffic.ImportedLog) error {
	progress := cli.NewProgress(s, c.ShowsProgress(s), int64(l.Totals.Timed), "Importing")
	defer progress.End()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := served.Each(ctx, func(r *record.Record) {
		if served.Records == 1 {
			_ = dir.Start(time.Unix(0, served.FirstNS)) // an error is in Err, too
		}
		dir.Put(r)
		if served.Records%(1<<12) == 0 {
			progress.Show(int64(served.Records), nil)
			if dir.Err() != nil {
				stop()
			}
		}
	})
	dir.Update(func(r *record.Run) {
		var from []string
		for _, log := range l.Facts() {
			from = append(from, filepath.Base(log.Path))
		}
		r.Settings = map[string]any{
			"imported_from": from, "log_times_are": l.TimesAre(), "durations_multiple_of_us": float64(served.Finest) / 1e3,
			"given_up_by_visitors": served.GivenUp,
		}
		if served.Records > 0 {
			r.LogStart = record.Instant{Time: time.Unix(0, served.FirstNS)}
			r.EndedAt = record.Instant{Time: time.Unix(0, served.LastNS)}
		}
	})
	return err
}

// imported is what --json prints, as plimsoll's other imports do.
type imported struct {
	Source    string        `json:"source"`
	Directory string        `json:"directory"`
	Status    record.Status `json:"status"`
	Reason    *string       `json:"reason"`
	Requests  uint64        `json:"requests"`
	Broken    uint64        `json:"broken_lines"`
	Notes     []string      `json:"notes"`
}

// conclude ends the run directory and says what became of the log.
func (c *Import) conclude(s cli.Streams, dir *record.Dir, l *traffic.Logs, served *traffic.ImportedLog, failure error) error {
	status, reason := record.Complete, ""
	switch {
	case errors.Is(failure, context.Canceled):
		status, reason = record.Interrupted, "the import was interrupted; import the log again"
	case failure != nil:
		status, reason = record.Failed, failure.Error()
	case served.Records == 0:
		status, reason = record.Failed, "no request of the log matches: see --from, --to, --include and --exclude"
	}
	summary, err := dir.Close(status, reason)
	if err == nil {
		err = record.PointLatest(dir.Path())
	}
	out := imported{
		Source: c.Logs[0], Directory: dir.Path(), Status: summary.Status, Requests: served.Records, Broken: l.Totals.Failed,
		Notes: importNotes(l, served, summary),
	}
	if summary.Reason != "" {
		out.Reason = &summary.Reason
	}
	if more := len(l.Paths) - 1; more > 0 {
		out.Source = fmt.Sprintf("%s and %d more", l.Paths[0], more)
	}
	if c.JSON {
		err = errors.Join(err, cli.PrintJSON(s.Out, map[string]any{"format": 1, "runs": []imported{out}}))
	} else {
		noun := "requests"
		if out.Requests == 1 {
			noun = "request"
		}
		fmt.Fprintf(s.Out, "%s: %d %s from %s\n", cli.Printable(out.Directory), out.Requests, noun, cli.Printable(out.Source))
		for _, note := range out.Notes {
			fmt.Fprintln(s.Out, "  "+cli.Printable(note))
		}
	}
	if err != nil {
		return err
	}
	if summary.Status != record.Complete {
		return fmt.Errorf("the import is %s: %s", summary.Status, summary.Reason)
	}
	return nil
}

// importNotes say what of the log is not in the run, and what its times are not.
func importNotes(l *traffic.Logs, served *traffic.ImportedLog, summary record.Summary) []string {
	skipped := summary.Requests.Skipped
	notes := []string{}
	for _, path := range l.Again {
		notes = append(notes, path+" was given more than once, and is read once")
	}
	for _, one := range []struct {
		n    uint64
		says string
	}{
		{l.Totals.Failed, "%d lines could not be read; the first are in rejects.log"},
		{skipped[traffic.SkipUntimed], "%d requests have no duration, and are left out"},
		{skipped[traffic.SkipTunnel], "%d connections were upgraded or tunnelled (101, CONNECT), so their duration is not a response time: left out"},
		{skipped[traffic.SkipNotHTTP], "%d request lines are not HTTP, and are left out, as in a replay"},
		{served.GivenUp, "%d visitors left before the answer (499): their times are how long they waited"},
	} {
		if one.n > 0 {
			notes = append(notes, fmt.Sprintf(one.says, one.n))
		}
	}
	if text := l.Format.Warning(); text != "" {
		notes = append(notes, text)
	}
	if l.Totals.NULs > 0 {
		notes = append(notes, traffic.NULText(l.Totals.NULs))
	}
	if len(l.Totals.Strays) > 0 {
		notes = append(notes, traffic.StrayText(l.Paths, l.Totals.Strays))
	}
	if served.Finest == time.Second {
		notes = append(notes, "durations are whole seconds, so no percentile is finer: log $request_time, or %D of Apache")
	}
	return append(notes, "Times are the server's own: without the network to the visitor, and without the wait before the server read "+
		"the request")
}
