package k6

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/js/common"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
)

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
	stop, release := stopping(i.vu.Context())
	defer release()
	warn := logWriter{state.Logger}
	streams := run.Streams{In: strings.NewReader(""), Out: io.Discard, Err: warn}
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
	status, reason := replay.Go(stop, context.Background())
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

// stopping ends when k6 ends the iteration, with the cause that a run directory knows.
func stopping(ctx context.Context) (stop context.Context, release func()) {
	stop, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() { cancel(run.ErrInterrupted) })
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
