package run

import (
	"errors"
	"fmt"
	"io"
	"net"

	"plimsoll/replay/live"
	"plimsoll/replay/record"
)

// checkMetrics refuses an address for live figures that nobody should or can listen on.
func (c *Command) checkMetrics() error {
	switch {
	case c.Metrics != "":
		if err := live.CheckAddress(c.Metrics, c.MetricsRemote); err != nil {
			return fmt.Errorf("--metrics %w", err)
		}
	case c.given["metrics"]:
		return errors.New("--metrics is empty: give an address, such as 127.0.0.1:9464")
	case c.MetricsRemote:
		return errors.New("--metrics-remote is only for --metrics: leave it out")
	}
	return nil
}

// listen takes the address for live figures, before anything else is begun; nil where none is wanted.
func (c *Command) listen() (net.Listener, error) {
	if c.Metrics == "" {
		return nil, nil
	}
	listener, err := live.Listen(c.Metrics)
	if err != nil {
		return nil, UsageError{fmt.Errorf("--metrics %w", err)}
	}
	return listener, nil
}

// show serves the live figures of the run until the replay is closed.
func (r *Replay) show(out io.Writer) {
	if r.listener == nil {
		return
	}
	metrics := live.New(r.Dir.Path(), r.target.URL, r.command.Timeout, r.names.Names, &r.connections)
	r.Dir.Observe(func(records []record.Record) { metrics.Observe(records) })
	r.closers = append(r.closers, metrics.Serve(r.listener))
	if !r.command.Quiet {
		fmt.Fprintf(out, "replay: live figures: http://%s%s\n", r.listener.Addr(), live.Path)
	}
}
