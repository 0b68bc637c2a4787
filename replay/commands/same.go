package commands

// `replay same`: two sites are compared.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/record"
	"plimsoll/replay/redact"
	"plimsoll/replay/same"
	"plimsoll/replay/traffic"
)

// Same is `replay same`.
type Same struct {
	Logs []string `arg:"" name:"log" help:"Access logs: paths, globs, rotated sets (access.log*), or - for standard input; plain, gz, bz2, xz or zst."`

	Baseline           string `help:"Base URL of the site as it should be, without path." required:"" placeholder:"URL" group:"Where to"`
	BaselineConnectTo  string `help:"Connect to this address for the baseline. The Host header, SNI and the certificate keep the URL's name." placeholder:"HOST:PORT" group:"Where to"`
	Candidate          string `help:"Base URL of the site that should be the same." required:"" placeholder:"URL" group:"Where to"`
	CandidateConnectTo string `help:"Connect to this address for the candidate." placeholder:"HOST:PORT" group:"Where to"`
	Insecure           bool   `help:"Accept any certificate." group:"Where to"`

	cli.LogFlags

	Include []string `help:"Only pages whose target matches one of these regular expressions." placeholder:"RE" sep:"none" group:"Which pages"`
	Exclude []string `help:"No pages whose target matches one of these." placeholder:"RE" sep:"none" group:"Which pages"`
	VHost   []string `name:"vhost" help:"Only requests to this virtual host, where the log names one; may be repeated." placeholder:"NAME" sep:"none" group:"Which pages"`
	Limit   uint64   `help:"Compare at most this many pages." placeholder:"N" group:"Which pages"`
	Sample  float64  `help:"Compare this share of the pages, drawn by target and seed: 0.1 is a tenth. Default: ${default}." default:"1" placeholder:"P" group:"Which pages"`
	Seed    int64    `help:"Seed of --sample." default:"1" group:"Which pages"`

	Ignore       []string `help:"Take text that matches out of both sides before they are compared." placeholder:"RE" sep:"none" group:"What is compared"`
	LastModified bool     `help:"Also compare the values of Last-Modified: for a copy that keeps the times of its files." group:"What is compared"`

	Header     []string `help:"Send this header with each request, to both sides." placeholder:"'K: V'" sep:"none" group:"Requests"`
	HeaderFile string   `help:"File of such headers, one per line, readable only by you: for cookies and other secrets." placeholder:"FILE" group:"Requests"`

	BaselineHeaderFile  string `help:"File of headers for the baseline alone." placeholder:"FILE" group:"Requests"`
	CandidateHeaderFile string `help:"File of headers for the candidate alone, such as the password of a protected clone." placeholder:"FILE" group:"Requests"`

	Concurrency int           `help:"Pages compared at the same time. Default: ${default}." default:"2" placeholder:"N" group:"Requests"`
	Rate        float64       `help:"Send at most this many requests a second to each side. Default: limited by --concurrency only." placeholder:"R" group:"Requests"`
	Pause       time.Duration `help:"Wait this long before a page that seems to differ is asked for again, so that what changes each second has changed. Default: ${default}." default:"1100ms" placeholder:"D" group:"Requests"`
	Timeout     time.Duration `help:"Time limit of one answer, to its last byte. Default: ${default}." default:"30s" group:"Requests"`
	MaxBytes    cli.ByteSize  `help:"Largest body, both as sent and unpacked; larger ones are not compared. Default: ${default}." default:"1GiB" placeholder:"SIZE" group:"Requests"`
	MaxTargets  int           `help:"Distinct targets to remember, about 40 bytes each. Default: ${default}." default:"2000000" placeholder:"N" group:"Requests"`

	Out  string `help:"Folder for results. Default: ${default}." default:"results" placeholder:"DIR" group:"Results"`
	JSON bool   `help:"Print the result as JSON." group:"Results"`
	cli.ShowFlags
}

// Help is printed below the usage of `replay same`.
func (c *Same) Help() string {
	return `Examples:
  replay same access.log --baseline https://shop.example --candidate http://10.0.0.5:8080
  replay same examples/access.log --baseline http://127.0.0.1:8080 --candidate https://shop.example --candidate-connect-to 127.0.0.1:8443 --insecure
  replay same examples/access.log --baseline http://127.0.0.1:8080 --candidate http://127.0.0.1:8081 --sample 0.5 --rate 50 --out results/same

Each distinct GET of the log goes to both sites, twice each. What differs between the two answers of one side varies by
itself and is left out. docs/same.md says what is compared.

Exit codes: 0 the sites are the same; 1 some pages differ; 2 the command line or a file is wrong; 3 undecided: it was
interrupted, or too much could not be compared.`
}

// shownPages is how many pages stand on the terminal.
const shownPages = 20

// samePlan is a command line, checked and read.
type samePlan struct {
	choice  same.Choice
	fetch   same.FetchOptions
	headers [2]http.Header       // of the baseline, and of the candidate
	digests [2]map[string]string // of those that the user gave
}

// check reads the flags and reports everything that is wrong with them at once.
func (c *Same) check() (*samePlan, error) {
	var wrong cli.Problems
	for name, side := range map[string][2]string{
		"baseline": {c.Baseline, c.BaselineConnectTo}, "candidate": {c.Candidate, c.CandidateConnectTo},
	} {
		if err := target.Validate(side[0], side[1]); err != nil {
			wrong.Note(fmt.Errorf("--%s: %w", name, err))
		}
	}
	wrong.NoteIf(c.Sample <= 0 || c.Sample > 1, "--sample: %v is out of range, give a share over 0 and up to 1", c.Sample)
	wrong.NoteIf(c.Concurrency < 1 || c.Concurrency > 256, "--concurrency: %d is out of range, give 1 to 256", c.Concurrency)
	wrong.NoteIf(!(c.Rate >= 0), "--rate: %v is out of range, give requests a second, or leave it out", c.Rate)
	wrong.NoteIf(c.Timeout < time.Millisecond || c.Timeout > time.Hour, "--timeout: %v is out of range, give 1ms to 1h", c.Timeout)
	wrong.NoteIf(c.Pause < 0 || c.Pause > time.Hour, "--pause: %v is out of range, give 0 to 1h", c.Pause)
	wrong.NoteIf(c.MaxBytes < 1, "--max-bytes: give at least 1")
	wrong.NoteIf(c.MaxTargets < 1, "--max-targets: %d is out of range, give at least 1", c.MaxTargets)
	wrong.NoteIf(c.Out == "", "--out is empty: give a folder")
	p := &samePlan{}
	p.choice = same.Choice{
		Include: wrong.Patterns("--include", c.Include), Exclude: wrong.Patterns("--exclude", c.Exclude),
		VHosts: map[string]bool{}, Limit: c.Limit, Sample: c.Sample, Seed: c.Seed, Most: c.MaxTargets,
	}
	for _, name := range c.VHost {
		p.choice.VHosts[name] = true
	}
	p.fetch = same.FetchOptions{
		Timeout: c.Timeout, MostBytes: int64(c.MaxBytes), Connections: c.Concurrency,
		LastModified: c.LastModified, Ignore: wrong.Patterns("--ignore", c.Ignore),
	}
	for _, re := range p.fetch.Ignore {
		wrong.NoteIf(re.MatchString(""), "--ignore %q matches nothing at all, so it may match everything: make it match at least one character", re)
	}
	for side, file := range [2]string{c.BaselineHeaderFile, c.CandidateHeaderFile} {
		var err error
		if p.headers[side], p.digests[side], err = c.headers(file); err != nil && (file != "" || side == 0) {
			wrong.Note(err)
		}
	}
	return p, errors.Join(wrong...)
}

// headers returns those that are sent to one side: a file of its own may add to those of both.
func (c *Same) headers(file string) (headers http.Header, digests map[string]string, err error) {
	headers = http.Header{
		"User-Agent": {"Mozilla/5.0 (compatible; plimsoll same/" + cli.Version + ")"},
		"Accept":     {"*/*"}, "Accept-Encoding": {"gzip"},
	}
	digests = map[string]string{}
	var wrong cli.Problems
	for _, from := range [...]struct {
		lines []string
		file  string
	}{{c.Header, c.HeaderFile}, {nil, file}} {
		given, err := cli.ReadHeaders(from.lines, from.file)
		if err != nil {
			wrong.Note(err)
			continue
		}
		wrong.NoteIf(given.Host() != "", "the header Host comes from --baseline and --candidate: give the names there, and the addresses with --baseline-connect-to and --candidate-connect-to")
		given.Each(func(name, value string) {
			name = http.CanonicalHeaderKey(name)
			wrong.NoteIf(name == "Accept-Encoding" || name == "Range" || strings.HasPrefix(name, "If-"),
				"the header %s changes the content of answers: leave it out", name)
			headers[name] = []string{value}
		})
		maps.Copy(digests, given.Digests(record.Digest))
	}
	return headers, digests, errors.Join(wrong...)
}

// Run compares the two sites.
func (c *Same) Run(s cli.Streams) error {
	plan, err := c.check()
	if err != nil {
		return cli.Usage(err)
	}
	stop, abort, release := cli.OnInterrupts()
	defer release()
	logs, err := c.OpenLogs(stop, s, c.Logs, 0, "auto", false)
	if err != nil {
		return interruptedOr(stop, err)
	}
	defer logs.Close()
	sides, err := c.targets(stop)
	if err != nil {
		return err
	}
	comparison := &same.Comparison{Names: [2]string{"baseline", "candidate"}, Logs: logs, Choice: plan.choice, Workers: c.Concurrency, Rate: c.Rate, Pause: c.Pause}
	for i, to := range sides {
		comparison.Sites[i] = same.NewSite(to, plan.headers[i], plan.fetch)
		defer comparison.Sites[i].Close()
	}
	result := c.result(plan, logs, sides)
	if result.Chosen, err = comparison.Count(stop); err != nil {
		return interruptedOr(stop, cli.Usage(err))
	}
	result.Pages.Total = result.Chosen.Pages
	if result.Pages.Total == 0 {
		return cli.Usage(errors.New("the log holds no GET to compare: see --include, --exclude, --vhost and --sample"))
	}
	if len(result.Chosen.VHosts) > 1 && len(c.VHost) == 0 {
		s.Warn(fmt.Sprintf("the log has requests to several virtual hosts (%s), and all of them go to one site: choose with --vhost",
			strings.Join(result.Chosen.VHosts, ", ")))
	}
	return c.compare(stop, abort, s, comparison, result)
}

// compare carries the comparison out, and writes and prints its result.
func (c *Same) compare(stop, abort context.Context, s cli.Streams, comparison *same.Comparison, result *same.Result) error {
	path, err := record.FreePath(c.Out, record.DirName(time.Now(), "same", c.Logs[0]))
	if err != nil {
		return cli.Usage(err)
	}
	folder, err := same.CreateFolder(path, result)
	if err != nil {
		return cli.Usage(err)
	}
	stop, fail := context.WithCancelCause(stop)
	defer fail(nil)
	done, progress := int64(0), cli.NewProgress(s, c.ShowsProgress(s), int64(result.Pages.Total), "")
	text := func() string {
		return fmt.Sprintf("%d the same, %d different, %d not compared", result.Pages.Same, result.Pages.Different, result.Pages.NotCompared)
	}
	comparison.Found = func(p same.Page) {
		if finding, notable := result.Add(p); notable {
			folder.Add(finding)
			if err := folder.Err(); err != nil {
				fail(err)
			}
		}
		done++
		progress.Describe(text())
		progress.Show(done, func() string { return fmt.Sprintf("of %d pages %s", result.Pages.Total, text()) })
	}
	err = comparison.Execute(stop, abort)
	progress.End()
	result.Conclude(err, errors.Is(err, cli.ErrInterrupted))
	if err := folder.Close(result, cli.Printable(result.WriteText(1000))); err != nil {
		return err
	}
	if c.JSON {
		if err := cli.PrintJSON(s.Out, result); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Out, "%s\nResult: %s\n", cli.Printable(result.WriteText(shownPages)), cli.Printable(folder.Path()))
	}
	switch result.Verdict {
	case same.VerdictSame:
		return nil
	case same.VerdictDifferent:
		return errors.New(result.Says)
	}
	return cli.Unknown(errors.New(result.Says))
}

// interruptedOr returns the error of what was interrupted.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cli.Unknown(cli.ErrInterrupted)
	}
	return err
}

// targets returns both sides, once they accept connections.
func (c *Same) targets(ctx context.Context) (sides [2]*target.Target, err error) {
	var wrong cli.Problems
	for i, side := range [2][3]string{
		{"--baseline", c.Baseline, c.BaselineConnectTo}, {"--candidate", c.Candidate, c.CandidateConnectTo},
	} {
		to, err := target.New(ctx, side[1], side[2], c.Insecure)
		if err == nil {
			err = to.Check(ctx, min(c.Timeout, 10*time.Second))
		}
		if err != nil {
			wrong.Note(fmt.Errorf("%s: %w", side[0], err))
		}
		sides[i] = to
	}
	if err := errors.Join(wrong...); err != nil {
		return sides, interruptedOr(ctx, cli.Usage(err))
	}
	if sides[0].URL == sides[1].URL && slices.Equal(sides[0].Addresses, sides[1].Addresses) {
		return sides, cli.Usage(fmt.Errorf("--baseline and --candidate are the same site, %s at %s: give two, or two addresses with --candidate-connect-to",
			sides[0].URL, sides[0].Addresses[0]))
	}
	return sides, nil
}

// result returns the result as it is before the first page.
func (c *Same) result(plan *samePlan, logs *traffic.Logs, sides [2]*target.Target) *same.Result {
	side := func(to *target.Target) same.Side {
		out := same.Side{URL: to.URL, Addresses: to.Addresses}
		if to.ConnectTo != "" {
			out.ConnectTo = &to.ConnectTo
		}
		return out
	}
	return &same.Result{
		Format: 1, Status: record.Running, Verdict: same.VerdictInconclusive, Says: "the comparison has not ended",
		StartedAt: record.Instant{Time: time.Now().UTC()},
		Baseline:  side(sides[0]), Candidate: side(sides[1]), Logs: logs.Facts(), Contents: logs.Contents(),
		Command: redact.Args(os.Args), Program: record.ThisProgram("replay", cli.Version),
		Pages: same.Pages{ByKind: map[string]uint64{}}, Shown: []same.Finding{},
		Settings: map[string]any{
			"include": append([]string{}, c.Include...), "exclude": append([]string{}, c.Exclude...),
			"vhost": slices.Sorted(maps.Keys(plan.choice.VHosts)), "ignore": append([]string{}, c.Ignore...),
			"limit": c.Limit, "sample": c.Sample, "seed": c.Seed, "last_modified": c.LastModified, "headers": plan.digests,
			"concurrency": c.Concurrency, "rate_per_s": c.Rate, "pause_s": c.Pause.Seconds(), "timeout_s": c.Timeout.Seconds(),
			"max_body_bytes": int64(c.MaxBytes), "max_targets": c.MaxTargets,
		},
	}
}
