// Package traffic makes access logs into what the engine sends: which requests, in which order, when they are due. It
// holds no clock and opens no connection; `replay run` and k6's module are two users of it.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/accesslog/formats"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Logs are the access logs of a run, looked through once before it begins.
type Logs struct {
	Format   *accesslog.Format
	Totals   accesslog.Totals
	AheadNS  []int64         // by how much each log's clock is ahead of the first one's, as far as Census saw; 0 where it is not
	Rejects  []record.Reject // the first lines that do not parse
	Paths    []string        // that another process can open
	Again    []string        // of those that were named again, and are read once
	Finished bool            // times are those of completion

	source    *accesslog.Source
	first     []accesslog.Reject
	named     []string // as the user wrote them
	visitors  *string  // what VisitorWarning found; nil: it has not looked
	hasMethod bool     // the format has a specifier for the method
	spool     string   // the temporary copy of standard input, or ""
}

// Reading says how logs are looked through.
type Reading struct {
	Spec            accesslog.Spec
	AllowDuplicates bool                    // what is in two files counts twice
	Pause           time.Duration           // longer ones are looked for; 0: than accesslog.LongPause
	Progress        func(done, total int64) // bytes; may be nil
}

// Open finds the logs, detects their format and counts them. Among the paths, - is standard input, which is copied to a
// temporary file, since a replay goes through its log more than once. An error is a mistake in what was asked, unless
// ctx has ended.
func Open(ctx context.Context, paths []string, stdin io.Reader, how Reading) (*Logs, error) {
	l := &Logs{}
	paths, err := l.spoolStdin(ctx, paths, stdin)
	if err != nil {
		return nil, err
	}
	if err := l.open(ctx, paths, how); err != nil {
		l.Close()
		return nil, err
	}
	l.Finished = l.Format.LogTime() == formats.Finished
	return l, nil
}

func (l *Logs) open(ctx context.Context, paths []string, how Reading) error {
	var err error
	if l.source, err = accesslog.Open(paths, nil); err != nil {
		return err
	}
	l.Paths, l.Again = l.source.Paths(), l.source.Again()
	l.named = l.Paths
	if l.spool != "" {
		l.named = nil
		for _, path := range l.Paths {
			l.named = append(l.named, strings.Replace(path, l.spool, "-", 1))
		}
	}
	if !how.AllowDuplicates {
		if err = CheckDuplicates(l.source, l.named); err != nil {
			return err
		}
	}
	if l.Format, err = l.source.FormatFor(how.Spec); err != nil {
		return err
	}
	l.hasMethod = strings.Contains(l.Format.LogFormat(), "%m") || strings.Contains(l.Format.LogFormat(), "%r")
	opts := accesslog.ReadOptions{Progress: how.Progress, Sums: true, Pause: how.Pause, OnReject: func(r accesslog.Reject) {
		l.first = append(l.first, r)
		l.Rejects = append(l.Rejects, record.Reject{
			File: l.named[r.File], Line: r.Line,
			Specifier: r.Mismatch.Specifier, Column: r.Mismatch.Column, Why: r.Mismatch.Why, Text: r.Text,
		})
	}}
	l.Totals, err = l.source.Count(ctx, l.Format, opts)
	return err
}

// CheckRejects refuses logs of which too much was rejected, unless that is allowed.
func (l *Logs) CheckRejects(allowRejects bool) error {
	return CheckRejects(l.Totals, l.Format.Name(), l.first, allowRejects)
}

// spoolStdin copies standard input to a temporary file, since a replay goes through its log more than once.
func (l *Logs) spoolStdin(ctx context.Context, paths []string, in io.Reader) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path != "-" {
			out = append(out, path)
			continue
		}
		if l.spool != "" {
			return nil, errors.New("- is given twice: standard input can be read only once")
		}
		file, err := os.CreateTemp("", "plimsoll-stdin-*.log")
		if err != nil {
			return nil, fmt.Errorf("cannot create a copy of standard input (%w): set TMPDIR to a writable folder", err)
		}
		l.spool = file.Name()
		defer context.AfterFunc(ctx, func() { _ = os.Remove(file.Name()) })() // also where nothing comes, and nobody waits
		_, err = io.Copy(file, in)
		if err = errors.Join(err, file.Close()); err != nil {
			l.Close()
			return nil, fmt.Errorf("cannot write the copy of standard input to %s (%w): set TMPDIR to a folder with enough space",
				filepath.Dir(l.spool), err)
		}
		out = append(out, l.spool)
	}
	return out, nil
}

// Close removes the copy of standard input.
func (l *Logs) Close() {
	if l.spool != "" {
		_ = os.Remove(l.spool)
	}
}

// TimesAre returns which instant of a request the logs' times are.
func (l *Logs) TimesAre() string {
	if l.Finished {
		return formats.Finished.String()
	}
	return formats.Received.String()
}

// Contents returns what is in the logs, by which they are known under any name, packed or not.
func (l *Logs) Contents() []map[string]any {
	contents := []map[string]any{}
	for i, facts := range l.Facts() {
		contents = append(contents, map[string]any{
			"sha256": l.Totals.SHA256[i], "lines": facts.Lines, "first": facts.First, "last": facts.Last,
		})
	}
	return contents
}

// Facts returns the logs as they stand in run.json.
func (l *Logs) Facts() []record.Log {
	var out []record.Log
	for i, counts := range l.Totals.Files {
		log := record.Log{
			Path: l.named[i], Format: l.Format.Name(),
			Lines: counts.Lines, Valid: counts.Valid, Failed: counts.Failed, Ignored: counts.Ignored,
		}
		if counts.Valid > 0 {
			first, last := l.Totals.Span(i)
			log.First, log.Last = record.Instant{Time: time.Unix(0, first)}, record.Instant{Time: time.Unix(0, last)}
		}
		out = append(out, log)
	}
	for _, strays := range l.Totals.Strays {
		out[strays.File].Strays = strays.Requests
	}
	for _, step := range l.Totals.SetBacks {
		if step.Line > 0 {
			out[step.File].SetBacks++
		}
	}
	for i, ns := range l.AheadNS {
		out[i].AheadS = math.Round(float64(ns) / 1e9)
	}
	return out
}

// VisitorWarning says that another field of the logs looks like the visitor's address; "" where none does.
func (l *Logs) VisitorWarning() string {
	if l.visitors == nil {
		text := VisitorWarning(l.source, l.Format)
		l.visitors = &text
	}
	return *l.visitors
}

// VisitorWarning says it of logs that are not opened as traffic.
func VisitorWarning(source *accesslog.Source, format *accesslog.Format) string {
	if field, ok := source.VisitorField(format); ok {
		return field.Warning()
	}
	return ""
}

// EachGet calls use for every request of the logs, in their order, until it returns false: with the target as it was sent,
// the virtual host that the log names, if it does, and whether this is a GET that can be sent again as it was. The bytes
// are good until the next call.
func (l *Logs) EachGet(ctx context.Context, use func(target, vhost []byte, isGet bool) bool) error {
	style := l.Format.TargetEscape()
	var target []byte
	return l.source.Each(ctx, l.Format, nil, func(r *accesslog.Request) bool {
		target = accesslog.Unescape(target[:0], r.Target, style)
		method := methodText(r.Method)
		if method == "" && !l.hasMethod {
			method = "GET"
		}
		sendable := (&wire.Request{Method: method, Target: string(target)}).Unsafe() == ""
		vhost := r.VHost
		if len(vhost) == 0 {
			vhost = r.URLHost
		}
		return use(target, vhost, method == "GET" && sendable)
	})
}

// More than this part of the lines, and more than this many, may not be rejected without --allow-rejects. A single odd
// line says nothing of the format, however short the log is.
const (
	maxRejectedShare = 0.10
	maxRejectedLines = 1
)

// CheckDuplicates refuses logs of which one begins with all that is in another. The names are those of its files.
func CheckDuplicates(logs *accesslog.Source, names []string) error {
	a, b, found := logs.Duplicates()
	if !found {
		return nil
	}
	return fmt.Errorf("%s and %s hold the same requests, which would count twice: give one of them, or --allow-duplicates",
		names[a], names[b])
}

// CheckRejects refuses a log of which too much was rejected, unless that is allowed; it shows the first rejects.
func CheckRejects(totals accesslog.Totals, format string, first []accesslog.Reject, allowRejects bool) error {
	if totals.Valid == 0 && totals.Failed == 0 {
		return fmt.Errorf("the log has no requests: it holds only %d comments and empty lines", totals.Ignored)
	}
	if allowRejects && totals.Valid > 0 {
		return nil
	}
	if totals.Valid > 0 && (totals.RejectedShare() <= maxRejectedShare || totals.Failed <= maxRejectedLines) {
		return nil
	}
	text := fmt.Sprintf("the format %q does not match this log (rejected lines: %d of %d): give the right one with --format (FORMAT=), or --allow-rejects",
		format, totals.Failed, totals.Failed+totals.Valid)
	for _, r := range first[:min(3, len(first))] {
		text += fmt.Sprintf("\n  line %d: %s", r.Line, r.Mismatch.Error())
	}
	return errors.New(text)
}
