// Package k6 is Plimsoll inside Grafana k6: the module k6/x/plimsoll replays access logs, and --out plimsoll=DIR writes
// what a script's requests took as run directories. It is a separate Go module, so that k6 stays out of bin/replay.
package k6

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"github.com/sirupsen/logrus"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/js/modules"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/output"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
	"plimsoll/replay/run"
	"plimsoll/replay/traffic"
)

func init() {
	modules.Register("k6/x/plimsoll", &rootModule{logs: map[string]*openLog{}})
	output.RegisterExtension("plimsoll", newOutput)
}

// rootModule is one for all virtual users of an instance, and knows the logs that they have opened.
type rootModule struct {
	handles
	logs map[string]*openLog
}

// instance is the module as one virtual user has it.
type instance struct {
	vu      modules.VU
	root    *rootModule
	metrics *replayMetrics
}

// NewModuleInstance makes the module for a virtual user.
func (r *rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	m, err := newReplayMetrics(vu.InitEnv().Registry)
	if err != nil {
		common.Throw(vu.Runtime(), err)
	}
	return &instance{vu: vu, root: r, metrics: m}
}

// Exports returns open and scenario.
func (i *instance) Exports() modules.Exports {
	return modules.Exports{Default: map[string]any{"open": i.open, "scenario": i.scenario}}
}

// open checks the options and returns a handle whose replay() replays it. It throws everything that is wrong at once.
func (i *instance) open(options sobek.Value) *sobek.Object {
	rt := i.vu.Runtime()
	if i.vu.InitEnv() == nil {
		common.Throw(rt, common.NewInitContextError("call plimsoll.open() in the init context, outside of all functions"))
	}
	given, err := readOptions(options)
	if err != nil {
		common.Throw(rt, err)
	}
	log, err := i.root.open(given, i.vu.InitEnv().GetAbsFilePath)
	if err != nil {
		common.Throw(rt, err)
	}
	handle := rt.NewObject()
	if err := handle.Set("replay", func() map[string]any { return i.replay(log) }); err != nil {
		common.Throw(rt, err)
	}
	return handle
}

// scenario returns the k6 scenario for a replay: one virtual user in each instance, who calls replay() once.
func (i *instance) scenario(given struct {
	Instances   int    `js:"instances"`
	MaxDuration string `js:"maxDuration"`
	Exec        string `js:"exec"`
}) map[string]any {
	scenario := map[string]any{
		"executor": "per-vu-iterations", "vus": max(1, given.Instances), "iterations": 1,
		"maxDuration": "24h", "gracefulStop": "60s",
	}
	if given.MaxDuration != "" {
		scenario["maxDuration"] = given.MaxDuration
	}
	if given.Exec != "" {
		scenario["exec"] = given.Exec
	}
	return scenario
}

// openLog is a log that a script has opened: one for all virtual users of the instance.
type openLog struct {
	command *run.Settings
	setup   *run.Setup
	minute  bool // it starts at a whole minute
	once    sync.Once
}

// handles guards the logs that are open.
type handles struct{ mu sync.Mutex }

// open checks the options, unless another virtual user has done so: all of them run the same script.
func (r *rootModule) open(given *options, absolute func(string) string) (*openLog, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.logs[given.key]; ok {
		return known, nil
	}
	command, setup, err := given.command(absolute)
	if err != nil {
		return nil, err
	}
	log := &openLog{command: command, setup: setup, minute: given.startAt == "minute"}
	r.logs[given.key] = log
	return log, nil
}

// replay replays a log, once in this instance: the first virtual user to call it does the work, all others return at
// once. It returns when all that is this instance's was sent and answered, or when k6 ends the iteration.
func (i *instance) replay(log *openLog) map[string]any {
	if i.vu.State() == nil {
		common.Throw(i.vu.Runtime(), common.NewInitContextError("call replay() in the function that k6 runs"))
	}
	var result map[string]any
	log.once.Do(func() {
		summary, dir, err := i.run(log)
		if err != nil {
			i.vu.State().Logger.Error("plimsoll: " + inCamelCase(err))
			i.vu.State().TestStatus.MarkFailed()
		}
		if dir != "" {
			result = map[string]any{"directory": dir, "summary": plain(summary)}
		}
	})
	return result
}

// run replays a log inside k6, from the options to the end of the run directory.
func (i *instance) run(log *openLog) (record.Summary, string, error) {
	state := i.vu.State()
	if log.minute {
		log.setup.StartAt = nextMinute(time.Now())
	}
	if err := divide(i.vu.Context(), log.setup); err != nil {
		return record.Summary{}, "", err
	}
	stop, release := stopContext(i.vu.Context())
	defer release()
	warn := logWriter{state.Logger}
	streams := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: warn, Name: "replay"}
	replay, err := run.Prepare(stop, log.command, log.setup, streams)
	if err != nil {
		return record.Summary{}, "", err
	}
	defer replay.Close()
	if at := log.setup.StartAt; !at.IsZero() && time.Now().After(at) {
		err := plainError("startAt " + at.UTC().Format(time.RFC3339Nano) +
			" had passed when the logs were counted and the target had answered: give a later one")
		_, closing := replay.Dir.Close(record.Failed, err.Error())
		return record.Summary{}, "", errors.Join(err, closing)
	}
	if log.setup.Shard != nil {
		state.Logger.Infof("plimsoll: instance %d of %d (%s)%s",
			log.setup.Shard.Index+1, log.setup.Shard.Of, log.setup.Shard.Segment, starts(log.setup.StartAt))
	}
	feed := newFeeder(i, replay)
	replay.Watch = feed.add
	status, reason := replay.Execute(stop, context.Background())
	summary, err := replay.Dir.Close(status, reason)
	feed.end(summary)
	state.Logger.Infof("plimsoll: run directory %s", replay.Dir.Path())
	if summary.GeneratorLimited {
		state.Logger.Warn("plimsoll: " + inCamelCase(plainError(summary.GeneratorLimitedReason)))
	}
	if err == nil && summary.Status != record.Complete {
		err = plainError("the run is " + string(summary.Status) + ": " + summary.Reason)
	}
	if err == nil {
		err = run.LimitsError(summary.Limits)
	}
	return summary, replay.Dir.Path(), err
}

// stopContext ends when k6 ends the iteration, with the cause that a run directory knows.
func stopContext(ctx context.Context) (stop context.Context, release func()) {
	stop, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() { cancel(cli.ErrInterrupted) })
	return stop, func() {
		unhook()
		cancel(nil)
	}
}

func starts(at time.Time) string {
	if at.IsZero() {
		return ", which starts now: give startAt for all instances to start together"
	}
	return ", which starts at " + at.UTC().Format(time.RFC3339Nano)
}

// plain returns a summary as JavaScript sees it: the content of summary.json.
func plain(summary record.Summary) map[string]any {
	var out map[string]any
	if text, err := json.Marshal(summary); err == nil {
		_ = json.Unmarshal(text, &out)
	}
	return out
}

type plainError string

func (e plainError) Error() string { return string(e) }

// logWriter gives warnings to k6's log.
type logWriter struct{ logger logrus.FieldLogger }

func (w logWriter) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		w.logger.Warn(inCamelCase(plainError(strings.TrimSpace(line))))
	}
	return len(text), nil
}

// divide gives this instance the share of the clients that its execution segment names. A run that is whole has none.
func divide(ctx context.Context, setup *run.Setup) error {
	state := lib.GetExecutionState(ctx)
	if state == nil || state.ExecutionTuple == nil || len(state.ExecutionTuple.Sequence.ExecutionSegmentSequence) < 2 {
		return nil
	}
	tuple := state.ExecutionTuple
	segments := tuple.Sequence.ExecutionSegmentSequence
	bounds := boundsOf(segments)
	share, err := traffic.NewShare(bounds, tuple.SegmentIndex)
	if err != nil {
		return fmt.Errorf("the execution segments cannot be used: %w: give --execution-segment-sequence as 0,1/4,1/2,3/4,1", err)
	}
	if err := everyInstanceWorks(ctx, state); err != nil {
		return err
	}
	var sequence []string
	for _, bound := range bounds {
		sequence = append(sequence, bound.RatString())
	}
	setup.Divide(share, record.Shard{
		Index: tuple.SegmentIndex, Of: len(segments), Segment: segments[tuple.SegmentIndex].String(), Sequence: sequence,
		StartAt: record.Instant{Time: setup.StartAt}, Clock: record.ThisClock(),
	})
	return nil
}

// boundsOf returns where the segments begin, and where the last one ends. k6 offers them as text only.
func boundsOf(segments lib.ExecutionSegmentSequence) []*big.Rat {
	var bounds []*big.Rat
	for i, segment := range segments {
		from, to, _ := strings.Cut(segment.String(), ":")
		if i == 0 {
			bounds = append(bounds, rational(from))
		}
		bounds = append(bounds, rational(to))
	}
	return bounds
}

func rational(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return new(big.Rat) // k6 writes none such; NewShare refuses bounds that do not ascend
	}
	return r
}

// everyInstanceWorks refuses a scenario whose virtual users do not suffice for all instances: k6 would give some of
// them nothing to do, and no instance would replay their clients.
func everyInstanceWorks(ctx context.Context, state *lib.ExecutionState) error {
	scenario := lib.GetScenarioState(ctx)
	if scenario == nil {
		return nil
	}
	config, ok := state.Test.Options.Scenarios[scenario.Name]
	if !ok {
		return nil
	}
	sequence := state.ExecutionTuple.Sequence
	var idle []string
	for i, segment := range sequence.ExecutionSegmentSequence {
		if !config.HasWork(sequence.GetTuple(i)) {
			idle = append(idle, segment.String())
		}
	}
	if len(idle) > 0 {
		return fmt.Errorf("scenario %s has too few virtual users: instances %v have none, and no instance would replay their clients: "+
			"scenarios: { %s: plimsoll.scenario({ instances: %d }) }", scenario.Name, idle, scenario.Name, len(sequence.ExecutionSegmentSequence))
	}
	return nil
}
