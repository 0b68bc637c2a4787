package commands

// `replay parse`: requests as JSON, or totals.

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/cli"
	"plimsoll/replay/traffic"
)

// Parse is `replay parse`.
type Parse struct {
	Logs []string `arg:"" name:"log" help:"Access logs: paths, globs, rotated sets (access.log*), or - for standard input; plain, gz, bz2, xz or zst."`

	cli.LogFlags

	Stats bool `help:"Print totals only, as one JSON object."`
	cli.ShowFlags
}

// Help is printed below the usage of `replay parse`.
func (c *Parse) Help() string {
	return `Examples:
  replay parse examples/access.log               one JSON object a request
  replay parse --stats 'examples/access.log*'    totals of a rotated set
  zcat examples/site.log.gz | replay parse --stats -
  replay parse --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"' examples/access.log
  replay parse --config goaccess.conf examples/access.log

The keys of the JSON, the presets and the specifiers are in docs/log-formats.md.

Exit codes: 0 the log is read; 2 the command line, a file or the log is wrong.`
}

// shownRejects is how many rejected lines are shown.
const shownRejects = 5

// Run parses the logs and prints requests or totals.
func (c *Parse) Run(s cli.Streams) error {
	logs, format, err := c.open(s.In)
	if err != nil {
		return err
	}
	visitors := traffic.VisitorWarning(logs, format)
	show, endShow := cli.ShowBytes(s, c.ShowsProgress(s) && (c.Stats || !cli.IsTerminal(s.Out)), "Reading the log")
	var rejected []accesslog.Reject
	opts := accesslog.ReadOptions{
		MaxRejects: shownRejects,
		OnReject:   func(r accesslog.Reject) { rejected = append(rejected, r) },
		Progress:   show,
	}
	out := bufio.NewWriterSize(s.Out, 256<<10)
	var totals accesslog.Totals
	if c.Stats {
		totals, err = printStats(out, logs, format, opts)
	} else {
		totals.Counts, err = printRequests(out, logs, format, opts)
	}
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	endShow()
	switch {
	case errors.Is(err, syscall.EPIPE): // the reader has seen enough: head, less
		return nil
	case err != nil:
		return cli.Usage(err)
	}
	if err := traffic.CheckRejects(totals, format.Name(), rejected, c.AllowRejects); err != nil {
		return cli.Usage(err)
	}
	if !c.Quiet {
		for _, r := range rejected {
			fmt.Fprintf(s.Err, "%s:%d: rejected: %v\n", cli.Printable(logs.Paths()[r.File]), r.Line, r.Mismatch)
		}
		if shown := uint64(len(rejected)); shown > 0 && totals.Failed > shown {
			fmt.Fprintf(s.Err, "and %d more rejected lines\n", totals.Failed-shown)
		}
		if text := format.Warning(); text != "" {
			fmt.Fprintln(s.Err, text)
		}
		showTimes(s.Err, logs.Paths(), totals)
		if visitors != "" {
			fmt.Fprintln(s.Err, cli.Printable(visitors))
		}
	}
	return nil
}

// open finds the logs and their format.
func (c *Parse) open(stdin io.Reader) (*accesslog.Source, *accesslog.Format, error) {
	spec, err := c.Spec()
	if err != nil {
		return nil, nil, err
	}
	logs, err := accesslog.Open(c.Logs, stdin)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	if !c.AllowDuplicates {
		if err := traffic.CheckDuplicates(logs, logs.Paths()); err != nil {
			return nil, nil, cli.Usage(err)
		}
	}
	format, err := logs.FormatFor(spec)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	return logs, format, nil
}

// showTimes shows which time stamps a replay would not follow.
func showTimes(w io.Writer, paths []string, totals accesslog.Totals) {
	if totals.NULs > 0 {
		fmt.Fprintln(w, traffic.NULText(totals.NULs))
	}
	if len(totals.Strays) > 0 {
		fmt.Fprintln(w, traffic.StrayText(paths, totals.Strays))
	}
	if text := traffic.SetBackText(paths, totals.SetBacks); text != "" {
		fmt.Fprintln(w, text)
	}
	if len(totals.Pauses) > 0 {
		fmt.Fprintln(w, traffic.PauseText(paths, totals.Pauses))
	}
}

// logTotals are the totals of a log, as `replay parse --stats` prints them. What is not known is null.
type logTotals struct {
	Format    string   `json:"format"`
	Lines     uint64   `json:"lines"`
	Valid     uint64   `json:"valid"`
	Failed    uint64   `json:"failed"`
	Ignored   uint64   `json:"ignored"`
	NULs      int64    `json:"nuls,omitempty"`
	Bytes     int64    `json:"bytes"`
	First     *string  `json:"first"`
	Last      *string  `json:"last"`
	DurationS *float64 `json:"duration_s"`
}

func printStats(
	w io.Writer, logs *accesslog.Source, format *accesslog.Format, opts accesslog.ReadOptions,
) (accesslog.Totals, error) {
	totals, err := logs.Count(context.Background(), format, opts)
	if err != nil {
		return totals, err
	}
	c := totals.Counts
	out := logTotals{Format: format.Name(), Lines: c.Lines, Valid: c.Valid, Failed: c.Failed, Ignored: c.Ignored, NULs: c.NULs, Bytes: c.Bytes}
	if c.Valid > 0 {
		first, last, duration := rfc3339(c.FirstNS), rfc3339(c.LastNS), c.DurationS()
		out.First, out.Last, out.DurationS = &first, &last, &duration
	}
	return totals, json.NewEncoder(w).Encode(out)
}

func rfc3339(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

func printRequests(
	w *bufio.Writer, logs *accesslog.Source, format *accesslog.Format, opts accesslog.ReadOptions,
) (counts accesslog.Counts, err error) {
	show := opts.OnReject
	opts.MaxRejects = int(^uint(0) >> 1) // all, to count them
	opts.OnReject = func(r accesslog.Reject) {
		if counts.Failed++; counts.Failed <= shownRejects {
			show(r)
		}
	}
	paths := logs.Paths()
	var line []byte
	for batch, err := range logs.Read(context.Background(), format, opts) {
		if err != nil {
			return counts, err
		}
		for i := range batch.Requests {
			r := &batch.Requests[i]
			line = append(appendRequest(line[:0], paths[r.File], r), '\n')
			if _, err := w.Write(line); err != nil {
				return counts, err
			}
		}
		counts.Valid += uint64(len(batch.Requests))
		batch.Release()
	}
	return counts, nil
}

// appendRequest appends one request as a JSON object. Keys whose value the log does not have are left out. Text is as
// the log has it, escapes not undone; where it is not UTF-8, its exact bytes follow in base64 under the key with
// _base64 at its end, and the text has U+FFFD in place of what is not UTF-8.
func appendRequest(b []byte, path string, r *accesslog.Request) []byte {
	b = appendText(append(b, '{'), "file", []byte(path))
	b = append(b, `,"line":`...)
	b = strconv.AppendUint(b, r.Line, 10)
	b = append(b, `,"time":"`...)
	b = time.Unix(0, r.TimeNS).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	for _, text := range [...]struct {
		key   string
		value []byte
	}{
		{"host", r.Host}, {"vhost", r.VHost}, {"method", r.Method}, {"target", r.Target}, {"protocol", r.Protocol},
		{"referer", r.Referer}, {"user_agent", r.UserAgent},
	} {
		if text.value != nil {
			b = appendText(append(b, ','), text.key, text.value)
		}
	}
	if r.Status > 0 {
		b = strconv.AppendUint(append(b, `,"status":`...), uint64(r.Status), 10)
	}
	if r.Bytes >= 0 {
		b = strconv.AppendInt(append(b, `,"bytes":`...), r.Bytes, 10)
	}
	if r.DurationNS >= 0 {
		b = strconv.AppendFloat(append(b, `,"duration_s":`...), float64(r.DurationNS)/1e9, 'f', -1, 64)
	}
	return append(b, '}')
}

func appendText(b []byte, key string, value []byte) []byte {
	b = append(append(append(b, '"'), key...), `":"`...)
	valid := true
	for i := 0; i < len(value); {
		r, n := utf8.DecodeRune(value[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			valid = false
			b = append(b, `\ufffd`...)
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0x2028 && r <= 0x202e || r == '<' || r == '>' || r == '&':
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			b = append(b, value[i:i+n]...)
		}
		i += n
	}
	b = append(b, '"')
	if valid {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(b, value), '"')
}
