package run

import (
	"fmt"
	"os"
	"time"

	"plimsoll/replay/engine"
	"plimsoll/replay/record"
	"plimsoll/replay/traffic"
)

// createDir makes the run directory and points OUT/latest at it.
func (c *Command) createDir(a *Asked, l *traffic.Logs, target *engine.Target) (*record.Dir, error) {
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
	name := record.DirName(time.Now(), "replay", c.Logs[0])
	if a.Shard != nil {
		run.Shard = a.Shard
		name += fmt.Sprintf("-%dof%d", a.Shard.Index+1, a.Shard.Of)
	}
	path, err := record.FreePath(c.Out, name)
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
	if a.Shard != nil {
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
