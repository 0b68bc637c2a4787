package k6

// --out plimsoll: the run directory of a script, and what shaped its load.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.k6.io/k6/errext"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/fsext"
	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"
	"go.k6.io/k6/output"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
	"plimsoll/replay/redact"
)

// runOutput is --out plimsoll=DIR: what any script's HTTP requests took, as a run directory in DIR. Memory is bounded:
// samples are made into records each second, and records are written each second.
type runOutput struct {
	output.SampleBuffer
	params  output.Params
	flusher *output.PeriodicFlusher

	dir     *record.Dir
	routes  *routes
	values  *trends
	begun   time.Time // what due_ns counts from; zero before the first sample
	dropped uint64
}

var _ output.WithStopWithTestError = &runOutput{}

func newOutput(params output.Params) (output.Output, error) {
	if params.ConfigArgument == "" {
		return nil, errors.New("--out plimsoll needs a folder for run directories: --out plimsoll=results")
	}
	return &runOutput{params: params, routes: newRoutes(), values: newTrends()}, nil
}

// Description returns what k6 prints at the start.
func (o *runOutput) Description() string {
	return fmt.Sprintf("plimsoll (%s)", o.params.ConfigArgument)
}

// Start makes the run directory.
func (o *runOutput) Start() error {
	facts, err := o.facts()
	if err != nil {
		return err
	}
	name := "script"
	if o.params.ScriptPath != nil {
		name = strings.TrimSuffix(path.Base(o.params.ScriptPath.Path), ".js")
	}
	at, err := record.FreePath(o.params.ConfigArgument, record.DirName(time.Now(), "k6", name))
	if err != nil {
		return err
	}
	if o.dir, err = record.Create(at, facts, record.Options{}); err != nil {
		return err
	}
	o.dir.SetRoutes(o.routes.all)
	if err := record.PointLatest(at); err != nil {
		return err
	}
	o.flusher, err = output.NewPeriodicFlusher(time.Second, o.flush)
	return err
}

// facts returns what run.json says. The names of backend and repeat come from the environment, as scripts have no
// options of ours.
func (o *runOutput) facts() (record.Run, error) {
	shaped, err := load(o.params, os.Args)
	if err != nil {
		return record.Run{}, err
	}
	facts := record.Run{
		Load: shaped, Scenario: "k6", Command: redact.Args(append([]string{"k6", "run"}, scriptName(o.params)...)),
		Loop: loopOf(o.params.ScriptOptions.Scenarios), Speed: "k6",
		Target:  record.Target{URL: o.params.Environment["PLIMSOLL_TARGET"]},
		Program: record.ThisProgram("k6", cli.Version), Host: record.ThisHost(), Process: record.ThisProcess(),
	}
	if scenario := o.params.Environment["PLIMSOLL_SCENARIO"]; scenario != "" {
		facts.Scenario = scenario
	}
	if backend := o.params.Environment["PLIMSOLL_BACKEND"]; backend != "" {
		facts.Backend = &backend
	}
	if text := o.params.Environment["PLIMSOLL_REPEAT"]; text != "" {
		repeat, err := strconv.Atoi(text)
		if err != nil || repeat < 1 {
			return facts, fmt.Errorf("PLIMSOLL_REPEAT=%q: give a number from 1", text)
		}
		facts.Repeat = &repeat
	}
	return facts, nil
}

func scriptName(params output.Params) []string {
	if params.ScriptPath == nil {
		return nil
	}
	return []string{params.ScriptPath.Path}
}

// loopOf returns what sets the pace: a rate (then no request waits for another's answer, except those of its own
// iteration), or the virtual users.
func loopOf(scenarios lib.ScenarioConfigs) record.Loop {
	for _, scenario := range scenarios {
		if !strings.HasSuffix(scenario.GetType(), "arrival-rate") {
			return record.Closed
		}
	}
	if len(scenarios) == 0 {
		return record.Closed
	}
	return record.Open
}

// flush makes the samples of the last second into records.
func (o *runOutput) flush() {
	containers := o.GetBufferedSamples()
	if len(containers) == 0 {
		return
	}
	if o.begun.IsZero() {
		o.begin(containers)
	}
	for _, container := range containers {
		if trail, ok := container.(*httpext.Trail); ok {
			r := recordOf(trail, o.begun, o.routes)
			o.dir.Add(&r)
			continue
		}
		for _, sample := range container.GetSamples() {
			o.take(sample)
		}
	}
}

// begin starts the run's clock. k6 does not say when it started; its first samples come within a second.
func (o *runOutput) begin(containers []metrics.SampleContainer) {
	for _, container := range containers {
		for _, sample := range container.GetSamples() {
			if o.begun.IsZero() || sample.Time.Before(o.begun) {
				o.begun = sample.Time
			}
		}
	}
	o.begun = o.begun.Add(-time.Second)
	_ = o.dir.Start(o.begun) // an error is found in Err, too
}

// take looks at a sample that is not a request's.
func (o *runOutput) take(sample metrics.Sample) {
	if sample.Metric.Name == metrics.DroppedIterationsName {
		o.dropped += uint64(max(0, sample.Value))
		return
	}
	if event, ok := o.values.event(sample, sample.Time.Sub(o.begun)); ok {
		o.dir.Event(event)
	}
}

// Stop ends the run directory of a test that ended by itself.
func (o *runOutput) Stop() error { return o.StopWithTestError(nil) }

// StopWithTestError ends the run directory; testErr is why the test ended before its end.
func (o *runOutput) StopWithTestError(testErr error) error {
	o.flusher.Stop()
	o.dir.SkipN("dropped_iterations", o.dropped)
	if o.dropped > 0 {
		o.dir.MarkLimited(fmt.Sprintf("k6 had no free virtual user for %d iterations when they were due, and dropped them: give it more with preAllocatedVUs and maxVUs, or lower the rate",
			o.dropped))
	}
	status, reason := record.Complete, ""
	switch {
	case testErr != nil && !afterItsEnd(testErr):
		status, reason = record.Interrupted, testErr.Error()
	case o.dir.Live().Sent == 0:
		status, reason = record.Failed, "the script sent no HTTP request"
	}
	summary, err := o.dir.Close(status, reason)
	o.params.Logger.Infof("plimsoll: run directory %s", o.dir.Path())
	if err == nil && summary.Status == record.Failed {
		o.params.Logger.Errorf("plimsoll: the run is %s: %s", summary.Status, summary.Reason)
	}
	return err
}

// afterItsEnd reports whether a test ran to its end and was only then found to have crossed its thresholds: that is its
// answer, and no interruption.
func afterItsEnd(testErr error) bool {
	var aborted errext.HasAbortReason
	return errors.As(testErr, &aborted) && aborted.AbortReason() == errext.AbortedByThresholdsAfterTestEnd
}

// Options of k6 that shape no load: where it goes, which share an instance has, and what is made of the results.
var shapelessOptions = []string{
	"hosts", "insecureSkipTLSVerify", "executionSegment", "executionSegmentSequence", "cloud", "ext", "httpDebug", "tags",
	"systemTags", "thresholds", "summaryTrendStats", "summaryTimeUnit", "metricSamplesBufferSize",
}

// Variables of ours that shape no load.
var shapelessVariables = []string{"PLIMSOLL_TARGET", "PLIMSOLL_BACKEND", "PLIMSOLL_REPEAT", "PLIMSOLL_SCENARIO"}

// load returns all that is known to shape the load of a script: the script, k6's options, and the variables that were
// given to it. Options and variables may be secret, so they stand as digests. A script sets the time-outs of its
// requests itself, so that of all is not known.
func load(params output.Params, args []string) (*record.Load, error) {
	options, err := optionDigests(params.ScriptOptions)
	if err != nil {
		return nil, err
	}
	return record.NewLoad(map[string]any{
		"program": "k6", "program_version": cli.Version, "k6_version": k6Version(),
		"script_sha256": scriptDigest(params), "options": options,
		"variables": variableDigests(params.Environment, args), "timeout_s": nil,
	})
}

func optionDigests(options lib.Options) (map[string]string, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for name, value := range values {
		if string(value) != "null" && !slices.Contains(shapelessOptions, name) {
			digests[name] = record.Digest(value)
		}
	}
	return digests, nil
}

// variableDigests returns the digests of the variables that were given with -e, and of ours. The target stands in none
// of them, since the same load may go elsewhere.
func variableDigests(environment map[string]string, args []string) map[string]string {
	values := map[string]string{}
	for name, value := range environment {
		if strings.HasPrefix(name, "PLIMSOLL_") {
			values[name] = value
		}
	}
	for i, arg := range args {
		given, found := strings.CutPrefix(arg, "--env=")
		switch {
		case found:
		case (arg == "-e" || arg == "--env") && i+1 < len(args):
			given = args[i+1]
		case strings.HasPrefix(arg, "-e"):
			given = arg[len("-e"):]
		}
		if name, value, found := strings.Cut(given, "="); found {
			values[name] = value
		}
	}
	target := environment["PLIMSOLL_TARGET"]
	digests := map[string]string{}
	for name, value := range values {
		if slices.Contains(shapelessVariables, name) {
			continue
		}
		if target != "" {
			value = strings.ReplaceAll(value, target, "PLIMSOLL_TARGET")
		}
		digests[name] = record.Digest([]byte(value))
	}
	return digests
}

// scriptDigest returns that of the script, without what it imports; null where it cannot be read again.
func scriptDigest(params output.Params) any {
	if params.ScriptPath == nil || params.FS == nil {
		return nil
	}
	text, err := fsext.ReadFile(params.FS, params.ScriptPath.Path)
	if err != nil {
		return nil
	}
	return record.Digest(text)
}

// k6Version returns the version of k6 that is built in; null where the program does not say.
func k6Version() any {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, module := range info.Deps {
		if module.Path == "go.k6.io/k6" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return nil
}
