package k6

import (
	"strings"
	"time"

	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
)

// Bounds of what is kept of a script's trends: every value is a line of events.jsonl.
const (
	mostTrends = 64
	mostValues = 1000
)

// trends are a script's own trends of times: times that belong to no single request.
type trends struct{ counts map[string]int }

func newTrends() *trends { return &trends{counts: map[string]int{}} }

// event returns the value as an event, if the sample belongs to a trend of times and there is still room for it.
func (m *trends) event(sample metrics.Sample, since time.Duration) (record.Event, bool) {
	metric := sample.Metric
	if metric.Type != metrics.Trend || metric.Contains != metrics.Time || strings.HasPrefix(metric.Name, "http_req") ||
		strings.HasPrefix(metric.Name, "plimsoll_") {
		return record.Event{}, false
	}
	name := metric.Name
	if about, ok := sample.Tags.Get("page"); ok {
		name += ": " + short(about)
	}
	if _, known := m.counts[name]; !known && len(m.counts) >= mostTrends {
		return record.Event{}, false
	}
	if m.counts[name]++; m.counts[name] > mostValues {
		return record.Event{}, false
	}
	more := map[string]any{"name": name, "value": sample.Value, "unit": "ms"}
	return record.Event{TNS: max(0, since.Nanoseconds()), Name: "measure", More: more}, true
}
