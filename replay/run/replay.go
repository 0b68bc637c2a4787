package run

// A replay, from its settings to the end of its run directory.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"plimsoll/replay/cli"
	"plimsoll/replay/engine"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/punctual"
	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/live"
	"plimsoll/replay/record"
	"plimsoll/replay/redact"
	"plimsoll/replay/route"
	"plimsoll/replay/traffic"
)

// Replay is a run that is about to begin: its logs are counted, its target answers, its directory is made. It is used
// once.
type Replay struct {
	Dir   *record.Dir
	Watch func(r *record.Record) // is called with every record, from many goroutines; may be nil

	command  *Settings
	setup    *Setup
	logs     *traffic.Logs
	target   *target.Target
	traffic  *traffic.Traffic
	members  map[uint32]exchange.ClientSession // by the log's client; empty: all are guests
	sessions map[uint32]exchange.ClientSession // those of members, and of guests who send forms; nil: none
	accounts int                               // that the members use
	names    *route.Namer
	streams  cli.Streams
	listener net.Listener // for live figures; nil: they are not wanted
	closers  []func()

	connections atomic.Int64 // that are open
	software    wire.Software
}

// Prepare prepares what a checked command asks for. The caller closes the replay.
func Prepare(ctx context.Context, c *Settings, setup *Setup, s cli.Streams) (*Replay, error) {
	r := &Replay{command: c, setup: setup, streams: s}
	if err := r.prepare(ctx); err != nil {
		r.Close()
		if ctx.Err() != nil {
			return nil, cli.ErrInterrupted
		}
		return nil, err
	}
	return r, nil
}

func (r *Replay) prepare(ctx context.Context) (err error) {
	c, s := r.command, r.streams
	if r.listener, err = c.listen(); err != nil {
		return err
	}
	if r.listener != nil {
		r.closers = append(r.closers, func() { _ = r.listener.Close() })
	}
	if r.logs, err = c.OpenLogs(ctx, s, c.Logs, c.MaxGap, c.LogTime, c.ShowsProgress(s)); err != nil {
		return err
	}
	r.closers = append(r.closers, r.logs.Close)
	if err = r.countClients(ctx); err != nil {
		return err
	}
	var closeTarget func()
	if r.target, closeTarget, err = c.target(ctx, r.setup, s, r.logs); err != nil {
		return err
	}
	r.closers = append(r.closers, closeTarget)
	if err = r.mayWrite(); err != nil {
		return err
	}
	if err = r.logIn(ctx, s); err != nil {
		return err
	}
	if err = r.joinSenders(ctx); err != nil {
		return err
	}
	if r.Dir, err = c.createDir(r.setup, r.logs, r.target); err != nil {
		return cli.Usage(err)
	}
	if r.setup.membership != nil {
		r.Dir.SetMembers(len(r.members), r.accounts)
	}
	r.names = route.New(r.setup.routes)
	r.Dir.SetRoutes(r.names.Names)
	r.traffic = traffic.New(r.setup.plan, r.logs, r.Dir, r.names)
	r.Dir.JudgeLimited(c.waitedForFiles)
	r.warnAhead()
	r.show()
	return nil
}

// warnAhead says before the run what will not be as requested.
func (r *Replay) warnAhead() {
	_, requests := r.traffic.Expected()
	warnings := append(r.traffic.Warnings(), r.logs.VisitorWarning(), r.logs.ApartText(),
		r.setup.census.Warning(r.command.ConnectionsPerClient), r.command.filesWarning(requests))
	for _, limit := range r.setup.limits {
		warnings = append(warnings, limit.Doubt(r.mostRequests()))
	}
	for _, text := range warnings {
		if text != "" {
			r.streams.Warn(text)
		}
	}
}

// Route returns the name of a route that a record had.
func (r *Replay) Route(number uint16) string { return r.names.Names()[number] }

// Expected returns how long the replay will take and how many requests it will send; 0 where that is unknown.
func (r *Replay) Expected() (lasts time.Duration, requests uint64) { return r.traffic.Expected() }

// Close gives back what Prepare opened, except the directory, which is closed with the status that Execute returns.
func (r *Replay) Close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
	r.closers = nil
}

// Execute sends the requests and says how the run ended. When stop is cancelled nothing more is sent; when abort is,
// what is in flight is given up.
func (r *Replay) Execute(stop, abort context.Context) (record.Status, string) {
	stop, failed := context.WithCancelCause(stop)
	defer failed(nil)
	go func() {
		select {
		case <-r.Dir.Failed():
			failed(r.Dir.Err())
		case <-stop.Done():
		}
	}()
	if r.command.AbortOnFail {
		go r.watchLimits(stop, failed)
	}
	garbagePercent := punctual.RareCollections
	if r.command.Users > 0 {
		garbagePercent = punctual.SmallHeap
	}
	spare := punctual.SpareThreads
	if r.target.Local && r.command.Speed == "max" {
		spare = 1 // nothing is due, and a thread more would take the server's processor
	}
	defer punctual.TuneRuntime(engine.Cores(r.target), spare, garbagePercent)()
	var beside *contention
	if r.target.Local {
		beside = watchContention("")
	}
	outcome := r.send(stop, abort)
	r.Dir.Unsent(outcome.Unsent)
	if outcome.Uncounted {
		r.Dir.Uncounted()
	}
	if outcome.Warn != nil {
		r.streams.Warn(outcome.Warn)
	}
	r.Dir.Update(func(run *record.Run) {
		r.describe(run)
		run.Sender = &record.Sender{
			BesideServer: r.target.Local, Cores: engine.Cores(r.target), Threads: outcome.Drivers, Nice: outcome.Nice,
		}
		if beside != nil {
			beside.describe(run.Sender)
		}
	})
	return r.status(outcome)
}

func (r *Replay) send(stop, abort context.Context) engine.Outcome {
	c, t := r.command, r.traffic
	var recorder exchange.Recorder = r.Dir
	if r.Watch != nil {
		recorder = tee{r.Dir, r.Watch}
	}
	e := engine.New(r.target, r.setup.headers, engine.Options{
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, MaxConnections: c.maxConnections(),
		PerClient: c.ConnectionsPerClient, Warmup: c.Warmup, KeepGoing: c.KeepGoing,
		Revalidates: &t.Revalidates, Sessions: r.sessions, StartAt: r.setup.StartAt, Connections: &r.connections, Software: &r.software,
	}, recorder, abort)
	switch {
	case c.Users > 0:
		return e.Users(stop, t.Visits(), c.Users, c.rampUp(), c.Duration, uint64(c.Seed))
	case c.Speed == "max":
		return e.Max(stop, t.Unpaced(), c.Connections, c.Duration)
	}
	return e.Open(stop, t.Paced())
}

// tee is a directory whose records go to a second receiver too.
type tee struct {
	*record.Dir
	watch func(r *record.Record)
}

// Add records a request and passes it on.
func (t tee) Add(r *record.Record) {
	t.Dir.Add(r)
	t.watch(r)
}

// describe adds to run.json what is known only after the schedule has ended.
func (r *Replay) describe(run *record.Run) {
	r.traffic.Describe(run)
	if server, poweredBy := r.software.Server(), r.software.PoweredBy(); len(server)+len(poweredBy) > 0 {
		run.Software = &record.Software{Server: server, PoweredBy: poweredBy}
	}
	if run.Shard != nil {
		run.Shard.Planned = r.traffic.Planned()
	}
}

// status returns how the run ended, and why.
func (r *Replay) status(o engine.Outcome) (record.Status, string) {
	if err := r.traffic.Err(); err != nil {
		return record.Failed, err.Error()
	}
	unsent := fmt.Sprintf("%d requests unsent", o.Unsent)
	if o.Uncounted {
		unsent = "an unknown number of requests unsent"
	}
	switch {
	case o.Cause == cli.ErrInterrupted:
		return record.Interrupted, "stopped with " + unsent
	case errors.As(o.Cause, new(overLimit)):
		return record.Interrupted, fmt.Sprintf("%s, with %s", o.Cause, unsent)
	case o.Cause != nil:
		return record.Failed, o.Cause.Error()
	case r.Dir.Live().Sent == 0:
		return record.Failed, "the log holds no request to send: see skipped in summary.json, and --methods, --include, --from"
	}
	return record.Complete, ""
}

// countClients counts who sends the requests, and spreads those of proxies unless that is not wanted.
func (r *Replay) countClients(ctx context.Context) error {
	c := r.command
	census, spread, err := r.logs.Census(ctx, r.setup.plan,
		traffic.Capacity{PerClient: c.ConnectionsPerClient, InAll: c.maxConnections(), Timeout: c.Timeout})
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.ErrInterrupted
	case err != nil:
		return cli.Usage(err)
	}
	if c.Clients == "log" {
		census.Over = 0
	} else {
		r.setup.plan.Spread = spread
	}
	r.setup.census = census
	return nil
}

// createDir makes the run directory and points OUT/latest at it.
func (c *Settings) createDir(setup *Setup, l *traffic.Logs, to *target.Target) (*record.Dir, error) {
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
		Program: record.ThisProgram("replay", cli.Version), Host: record.ThisHost(), Process: record.ThisProcess(), Load: load,
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
	dir, err := record.Create(path, run, record.Options{GrinderLog: c.GrinderLog, HDRLog: c.HDRLog, Limits: setup.limitsToJudge()})
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

func (c *Settings) paceName() string {
	switch {
	case c.Users > 0:
		return fmt.Sprintf("users %d", c.Users)
	case c.Rate > 0:
		return fmt.Sprintf("rate %v/s", c.Rate)
	}
	return c.Speed
}

// checkMetrics refuses an address for live figures that nobody should or can listen on.
func (c *Settings) checkMetrics() error {
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
func (c *Settings) listen() (net.Listener, error) {
	if c.Metrics == "" {
		return nil, nil
	}
	listener, err := live.Listen(c.Metrics)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--metrics %w", err))
	}
	return listener, nil
}

// show serves the live figures of the run until the replay is closed.
func (r *Replay) show() {
	if r.listener == nil {
		return
	}
	metrics := live.New(r.Dir.Path(), r.target.URL, r.command.Timeout, r.names.Names, &r.connections)
	r.Dir.Observe(func(records []record.Record) { metrics.Observe(records) })
	r.closers = append(r.closers, metrics.Serve(r.listener))
	if !r.command.Quiet {
		r.streams.Say(fmt.Sprintf("live figures: http://%s%s", r.listener.Addr(), live.Path))
	}
}
