package commands

// `replay watch`: live figures of what runs in a folder.

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/live"
)

// Watch is `replay watch`.
type Watch struct {
	Folder        string `arg:"" help:"The folder of a run, of an experiment, or of several, such as results."`
	Metrics       string `help:"Serve the figures to Prometheus at this address under /metrics. Default: ${default}." default:"127.0.0.1:9464" placeholder:"HOST:PORT"`
	MetricsRemote bool   `help:"Allow an address that other machines can reach."`
	UntilEOF      bool   `help:"Exit when standard input ends, as it does when the program that started this one has ended." name:"until-eof"`
}

// lookEvery is as often as runs write their records out.
const lookEvery = time.Second

// Help is printed below the usage of `replay watch`.
func (c *Watch) Help() string {
	return `Examples:
  replay watch results
  replay watch results/latest --metrics 127.0.0.1:9465

It shows what is running in the folder: replays, scenarios and experiments, by scenario and backend. Of a run that
began earlier, it shows what comes from now on. It only reads.

Exit codes: 0 Ctrl-C stopped it; 1 it failed; 2 the command line is wrong.`
}

// Run shows the runs until it is ended.
func (c *Watch) Run(s cli.Streams) error {
	if err := live.CheckAddress(c.Metrics, c.MetricsRemote); err != nil {
		return cli.Usage(fmt.Errorf("--metrics %w", err))
	}
	if err := live.CheckFolder(c.Folder); err != nil {
		return cli.Usage(err)
	}
	listener, err := live.Listen(c.Metrics)
	if err != nil {
		return cli.Usage(fmt.Errorf("--metrics %w", err))
	}
	stop, _, release := cli.OnInterrupts()
	defer release()
	if c.UntilEOF {
		var cancel context.CancelFunc
		stop, cancel = context.WithCancel(stop)
		defer cancel()
		go func() { _, _ = io.Copy(io.Discard, s.In); cancel() }()
	}
	folder := live.NewFolder(c.Folder, time.Now())
	defer folder.Serve(listener)()
	if _, err := fmt.Fprintf(s.Out, "%s: live figures: http://%s%s\n", s.Name, listener.Addr(), live.Path); err != nil {
		return err
	}
	watch(stop, folder, s)
	return nil
}

// watch looks once a second. What cannot be read is reported once.
func watch(stop context.Context, folder *live.Folder, s cli.Streams) {
	reported := map[string]bool{}
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		if err := folder.Look(time.Now()); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !reported[line] {
					reported[line] = true
					s.Say(line)
				}
			}
		}
		select {
		case <-ticks.C:
		case <-stop.Done():
			return
		}
	}
}
