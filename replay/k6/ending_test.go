package k6

import (
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"
	"go.k6.io/k6/output"

	"plimsoll/replay/record"
)

// trailsOf are requests of a script at ten a second, answered or refused.
func trailsOf(registry *metrics.Registry, begun time.Time, from, to int, refused bool) []metrics.SampleContainer {
	tags := map[string]string{"status": "200", "name": "n"}
	if refused {
		tags = map[string]string{"status": "0", "error_code": "1212", "error": "dial: connection refused", "name": "n"}
	}
	var out []metrics.SampleContainer
	for i := from; i < to; i++ {
		trail := &httpext.Trail{
			EndTime: begun.Add(time.Duration(i) * 100 * time.Millisecond), Duration: time.Millisecond,
			Tags: registry.RootTagSet().WithTagsFromMap(tags), Metadata: map[string]string{"vu": "1"},
		}
		if !refused {
			trail.Waiting = time.Millisecond
		}
		trail.SaveSamples(metrics.RegisterBuiltinMetrics(registry), &metrics.TagsAndMeta{Tags: trail.Tags, Metadata: trail.Metadata})
		out = append(out, trail)
	}
	return out
}

func TestAScriptWhoseTargetDiedHasFailed(t *testing.T) {
	for _, c := range []struct {
		says   string
		end    int // of the refusals, which begin with request 40
		answer int // of the answers after them
		want   record.Status
	}{
		{"it is killed and stays away", 100, 100, record.Failed},
		{"it comes back", 80, 100, record.Complete},
	} {
		registry := metrics.NewRegistry()
		out := t.TempDir()
		made, err := newOutput(output.Params{ConfigArgument: out, Logger: logrus.New()})
		if err != nil {
			t.Fatal(err)
		}
		if err := made.Start(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		made.AddMetricSamples(trailsOf(registry, begun, 0, 40, false))
		made.AddMetricSamples(trailsOf(registry, begun, 40, c.end, true))
		made.AddMetricSamples(trailsOf(registry, begun, c.end, c.answer, false))
		if err := made.Stop(); err != nil {
			t.Fatal(err)
		}
		run, err := record.OpenRun(out + "/latest")
		if err != nil {
			t.Fatal(err)
		}
		if run.Run.Status != c.want || (run.Run.Reason != nil) != (c.want == record.Failed) {
			t.Errorf("%s: %s, want %s", c.says, run.Run.Status, c.want)
		}
		if max, censored := run.Summary.Response.Censored["max"]; !censored || max != nil || run.Summary.Requests.Sent != 100 {
			t.Errorf("%s: a script's time-out is known: %v", c.says, run.Summary.Response.Censored)
		}
		_ = run.Close()
	}
}
