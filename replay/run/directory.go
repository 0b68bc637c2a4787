package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/record"
	"plimsoll/replay/redact"
	"plimsoll/replay/traffic"
)

// checkOut finds out early that --out cannot hold a run directory.
func (c *Command) checkOut() error {
	if c.Out == "" {
		return errors.New("--out is empty: give a folder")
	}
	for at := filepath.Clean(c.Out); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			if _, err := os.Lstat(at); err == nil {
				return fmt.Errorf("--out %s: the link %s leads nowhere: choose another folder", c.Out, at)
			}
			continue // it will be made
		}
		switch {
		case err != nil:
			return fmt.Errorf("--out %s: %w: choose another folder", c.Out, err)
		case !info.IsDir():
			return fmt.Errorf("--out %s: %s is not a folder: choose another one", c.Out, at)
		}
		if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("--out %s: this user cannot write to %s (%w): choose another folder", c.Out, at, err)
		}
		return nil
	}
}

// createDir makes the run directory and points OUT/latest at it.
func (c *Command) createDir(setup *Setup, l *traffic.Logs, to *target.Target) (*record.Dir, error) {
	load, err := c.load(setup, l)
	if err != nil {
		return nil, err
	}
	run := record.Run{
		Scenario: "replay", Backend: c.Backend, Repeat: c.Repeat,
		Target:  record.Target{URL: to.URL, Addresses: to.Addresses},
		Command: redact.Args(os.Args),
		Seed:    c.Seed, Loop: record.Open, Speed: c.paceName(), WarmupS: c.Warmup.Seconds(),
		Logs: l.Facts(), Clients: setup.census.Facts(),
		Program: record.ThisProgram("replay", Version), Host: record.ThisHost(), Process: record.ThisProcess(), Load: load,
	}
	for _, limit := range setup.limits {
		run.Limits = append(run.Limits, limit.String())
	}
	if to.ConnectTo != "" {
		run.Target.ConnectTo = &to.ConnectTo
	}
	if c.Users > 0 || setup.plan.Speed == 0 {
		run.Loop = record.Closed
	}
	name := record.DirName(time.Now(), "replay", c.Logs[0])
	if setup.Shard != nil {
		run.Shard = setup.Shard
		name += fmt.Sprintf("-%dof%d", setup.Shard.Index+1, setup.Shard.Of)
	}
	path, err := record.FreePath(c.Out, name)
	if err != nil {
		return nil, err
	}
	dir, err := record.Create(path, run, record.Options{GrinderLog: c.GrinderLog, HDRLog: c.HDRLog, Limits: setup.judged()})
	if err != nil {
		return nil, err
	}
	for _, r := range l.Rejects {
		dir.Reject(r)
	}
	if setup.Shard != nil {
		return dir, nil // latest is what is merged of all instances
	}
	return dir, record.PointLatest(path)
}

func (c *Command) paceName() string {
	switch {
	case c.Users > 0:
		return fmt.Sprintf("users %d", c.Users)
	case c.Rate > 0:
		return fmt.Sprintf("rate %v/s", c.Rate)
	}
	return c.Speed
}
