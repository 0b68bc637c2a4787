package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/record"
)

// logs are the access logs of a run, looked through once before it begins.
type logs struct {
	source    *accesslog.Source
	format    *accesslog.Format
	totals    accesslog.Totals
	rejects   []record.Reject
	paths     []string // that another process can open
	named     []string // as the user wrote them
	finished  bool     // times are those of completion
	hasMethod bool     // the format has a specifier for the method
	spool     string   // the temporary copy of standard input, or ""
}

// openLogs finds the logs, detects their format and counts them.
func (c *runCmd) openLogs(ctx context.Context, s streams, quiet bool) (*logs, error) {
	l := &logs{}
	paths, err := l.spoolStdin(c.Logs, s.in)
	if err != nil {
		return nil, err
	}
	if err := l.open(ctx, c.logFlags, paths, s, quiet); err != nil {
		l.close()
		if ctx.Err() != nil {
			return nil, answerNo{errInterrupted}
		}
		return nil, err
	}
	switch c.LogTime {
	case "received":
		l.finished = false
	case "finished":
		l.finished = true
	default:
		l.finished = l.format.LogTime() == accesslog.Finished
	}
	return l, nil
}

func (l *logs) open(ctx context.Context, flags logFlags, paths []string, s streams, quiet bool) error {
	spec, err := flags.spec()
	if err != nil {
		return err
	}
	if l.source, err = accesslog.Open(paths, nil); err != nil {
		return usageError{err}
	}
	l.paths = l.source.Paths()
	l.named = l.paths
	if l.spool != "" {
		l.named = nil
		for _, path := range l.paths {
			l.named = append(l.named, strings.Replace(path, l.spool, "-", 1))
		}
	}
	if l.format, err = l.source.FormatFor(spec); err != nil {
		return usageError{err}
	}
	l.hasMethod = strings.Contains(l.format.LogFormat(), "%m") || strings.Contains(l.format.LogFormat(), "%r")
	var first []accesslog.Rejected
	opts := accesslog.ReadOptions{OnReject: func(r accesslog.Rejected) {
		first = append(first, r)
		l.rejects = append(l.rejects, record.Reject{
			File: l.named[r.File], Line: r.Line, Specifier: r.Reject.Specifier, Column: r.Reject.Column, Why: r.Reject.Why, Text: r.Text,
		})
	}}
	done := func() {}
	if !quiet && isTerminal(s.err) {
		opts.Progress, done = countingProgress(s.err)
	}
	l.totals, err = l.source.Count(ctx, l.format, opts)
	done()
	if err != nil {
		return usageError{err}
	}
	return flags.tolerable(l.totals, l.format.Name(), first)
}

// countingProgress shows how much of the logs is read.
func countingProgress(out io.Writer) (show func(done, total int64), end func()) {
	var bar *progressbar.ProgressBar
	return func(done, total int64) {
			if bar == nil {
				bar = progressbar.NewOptions64(max(total, 1), progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("Reading the log"),
					progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(200*time.Millisecond))
			}
			_ = bar.Set64(done)
		}, func() {
			if bar != nil {
				_ = bar.Finish()
			}
		}
}

// spoolStdin copies standard input to a temporary file, since a replay goes through its log more than once.
func (l *logs) spoolStdin(paths []string, in io.Reader) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path != "-" {
			out = append(out, path)
			continue
		}
		if l.spool != "" {
			return nil, usageError{errors.New("- stands twice among the logs: standard input can be read once")}
		}
		file, err := os.CreateTemp("", "plimsoll-stdin-*.log")
		if err != nil {
			return nil, usageError{fmt.Errorf("no room for a copy of standard input (%w): set TMPDIR to a folder that can be written", err)}
		}
		l.spool = file.Name()
		_, err = io.Copy(file, in)
		if err = errors.Join(err, file.Close()); err != nil {
			l.close()
			return nil, usageError{fmt.Errorf("cannot keep a copy of standard input in %s (%w): set TMPDIR to a folder with room", filepath.Dir(l.spool), err)}
		}
		out = append(out, l.spool)
	}
	return out, nil
}

func (l *logs) close() {
	if l.spool != "" {
		_ = os.Remove(l.spool)
	}
}

// each calls use for every valid request in the order of the logs, until use answers false.
func (l *logs) each(ctx context.Context, use func(r *accesslog.Request) bool) error {
	for batch, err := range l.source.Read(ctx, l.format, accesslog.ReadOptions{}) {
		if err != nil {
			return err
		}
		more := true
		for i := range batch.Requests {
			if more = use(&batch.Requests[i]); !more {
				break
			}
		}
		batch.Release()
		if !more {
			return nil
		}
	}
	return nil
}

// span is from when to when the logs go, and how many requests they hold.
func (l *logs) span() (first, last time.Time, valid uint64) {
	return time.Unix(0, l.totals.FirstNS), time.Unix(0, l.totals.LastNS), l.totals.Valid
}

// described are the logs as they stand in run.json.
func (l *logs) described() []record.Log {
	var out []record.Log
	for i, counts := range l.totals.Files {
		log := record.Log{
			Path: l.named[i], Format: l.format.Name(), Lines: counts.Lines, Valid: counts.Valid, Failed: counts.Failed, Ignored: counts.Ignored,
		}
		if counts.Valid > 0 {
			log.First, log.Last = record.Instant{Time: time.Unix(0, counts.FirstNS)}, record.Instant{Time: time.Unix(0, counts.LastNS)}
		}
		out = append(out, log)
	}
	return out
}
