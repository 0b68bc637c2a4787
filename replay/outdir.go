package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/replay/engine"
	"plimsoll/replay/record"
	"plimsoll/replay/traffic"
)

// createDir makes the run directory and points OUT/latest at it.
func (c *runCmd) createDir(a *asked, l *traffic.Logs, target *engine.Target) (*record.Dir, error) {
	run := record.Run{
		Scenario: "replay", Backend: c.Backend, Repeat: c.Repeat,
		Target:  record.Target{URL: target.URL, Addresses: target.Addresses},
		Command: record.RedactArgs(os.Args),
		Seed:    c.Seed, Loop: record.Open, Speed: c.paceName(), WarmupS: c.Warmup.Seconds(),
		Logs:    l.Described(),
		Program: record.ThisProgram("replay", Version), Host: record.ThisHost(),
	}
	if target.ConnectTo != "" {
		run.Target.ConnectTo = &target.ConnectTo
	}
	if c.Users > 0 || a.plan.Speed == 0 {
		run.Loop = record.Closed
	}
	path, err := freePath(c.Out, dirName(time.Now(), c.Logs[0]))
	if err != nil {
		return nil, err
	}
	dir, err := record.Create(path, run, record.Options{GrinderLog: c.GrinderLog, HDRLog: c.HDRLog})
	if err != nil {
		return nil, err
	}
	for _, r := range l.Rejects {
		dir.Reject(r)
	}
	return dir, pointLatest(c.Out, filepath.Base(path))
}

func (c *runCmd) paceName() string {
	switch {
	case c.Users > 0:
		return fmt.Sprintf("users %d", c.Users)
	case c.Rate > 0:
		return fmt.Sprintf("rate %v/s", c.Rate)
	}
	return c.Speed
}

// dirName is a name that sorts by time and tells which log it was. Of the log's own name only harmless characters stay.
func dirName(now time.Time, log string) string {
	base := filepath.Base(log)
	if log == "-" {
		base = "stdin"
	}
	for _, suffix := range []string{".gz", ".bz2", ".xz", ".zst", ".log"} {
		base = strings.TrimSuffix(base, suffix)
	}
	base = strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, base)
	if len(base) > 60 {
		base = base[:60]
	}
	return now.UTC().Format("20060102T150405Z") + "-replay-" + strings.Trim(base, ".-")
}

// freePath is OUT/name, or with a number where that exists.
func freePath(out, name string) (string, error) {
	for i := 1; i < 1000; i++ {
		path := filepath.Join(out, name)
		if i > 1 {
			path = fmt.Sprintf("%s-%d", path, i)
		}
		_, err := os.Lstat(path)
		if os.IsNotExist(err) {
			return path, nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot look into the output folder %s (%w): choose another one with --out", out, err)
		}
	}
	return "", fmt.Errorf("%s is full of runs of this second: choose another folder with --out", out)
}

// pointLatest makes OUT/latest a link to the directory, by rename, so that it always points somewhere.
func pointLatest(out, name string) error {
	temporary := filepath.Join(out, fmt.Sprintf(".latest-%d", os.Getpid()))
	_ = os.Remove(temporary)
	if err := os.Symlink(name, temporary); err != nil {
		return fmt.Errorf("cannot make the link %s/latest: %w", out, err)
	}
	if err := os.Rename(temporary, filepath.Join(out, "latest")); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("cannot replace the link %s/latest: %w", out, err)
	}
	return nil
}
