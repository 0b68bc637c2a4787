package k6

import (
	"strconv"
	"time"

	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
)

// replayMetrics are what a replay has beside k6's own metrics (docs/k6.md).
type replayMetrics struct {
	response, lag                   *metrics.Metric // trends, ms
	errors, mismatches, queued      *metrics.Metric // counters
	skipped, unsent, retried, total *metrics.Metric
}

func newReplayMetrics(registry *metrics.Registry) (*replayMetrics, error) {
	m := &replayMetrics{}
	for _, one := range []struct {
		into **metrics.Metric
		name string
		kind metrics.MetricType
		unit metrics.ValueType
	}{
		{&m.response, "plimsoll_response", metrics.Trend, metrics.Time},
		{&m.lag, "plimsoll_lag", metrics.Trend, metrics.Time},
		{&m.errors, "plimsoll_errors", metrics.Counter, metrics.Default},
		{&m.mismatches, "plimsoll_status_mismatch", metrics.Counter, metrics.Default},
		{&m.queued, "plimsoll_queued", metrics.Counter, metrics.Default},
		{&m.skipped, "plimsoll_skipped", metrics.Counter, metrics.Default},
		{&m.unsent, "plimsoll_unsent", metrics.Counter, metrics.Default},
		{&m.retried, "plimsoll_retried", metrics.Counter, metrics.Default},
		{&m.total, "plimsoll_requests", metrics.Counter, metrics.Default},
	} {
		metric, err := registry.NewMetric(one.name, one.kind, one.unit)
		if err != nil {
			return nil, err
		}
		*one.into = metric
	}
	return m, nil
}

// series are the tags of a request: its route, under k6's tag `name`, and its status or kind of error.
type series struct {
	route  uint16
	status uint16
	kind   record.ErrorKind
}

// sampler makes records into samples. It is for one goroutine.
type sampler struct {
	own     *replayMetrics
	builtin *metrics.BuiltinMetrics
	tags    *metrics.TagSet
	route   func(number uint16) string
	started time.Time
	known   map[series]*metrics.TagSet
}

func (s *sampler) tagsOf(r *record.Record) *metrics.TagSet {
	key := series{r.Route, r.Status, r.Error}
	tags, ok := s.known[key]
	if !ok {
		tags = s.tags.With("name", s.route(r.Route)).With("status", strconv.Itoa(int(r.Status)))
		if r.Error != record.None {
			tags = tags.With("error", r.Error.String())
		}
		s.known[key] = tags
	}
	return tags
}

// Samples of one request; its counts come together with others'.
const mostSamples = 4

// counted is one series of a counter.
type counted struct {
	metric *metrics.Metric
	tags   *metrics.TagSet
}

// samples are those of some requests; those of the warm-up have none. k6's own metrics get what they mean: http_req_duration is
// sending, waiting and receiving, without the opening of a connection; http_req_failed is no response, or a status of 400 or
// more. Counters get one sample a series, since k6 takes time for each.
func (s *sampler) samples(records []record.Record) metrics.Samples {
	out := make(metrics.Samples, 0, len(records)*mostSamples+16)
	counts := map[counted]float64{}
	var last time.Time
	for i := range records {
		r := &records[i]
		if r.Flags&record.Warmup != 0 {
			continue
		}
		tags := s.tagsOf(r)
		last = s.started.Add(time.Duration(r.DoneNS()))
		add := func(metric *metrics.Metric, value float64) {
			out = append(out, metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: last, Value: value})
		}
		count := func(metric *metrics.Metric) { counts[counted{metric, tags}]++ }
		opening := min(uint64(r.ConnectUS)+uint64(r.TLSUS)+uint64(r.DNSUS), uint64(r.TotalUS))
		add(s.builtin.HTTPReqDuration, ms(uint64(r.TotalUS)-opening))
		add(s.builtin.HTTPReqFailed, when(r.Error != record.None || r.Status >= 400))
		add(s.own.response, ms(r.ResponseUS()))
		count(s.builtin.HTTPReqs)
		if r.Flags&record.Queued == 0 {
			add(s.own.lag, ms(uint64(r.LagUS)))
		} else {
			count(s.own.queued)
		}
		if r.Error != record.None {
			count(s.own.errors)
		} else if r.LoggedStatus != 0 && r.LoggedStatus != r.Status {
			count(s.own.mismatches)
		}
	}
	for series, value := range counts {
		out = append(out, metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: series.metric, Tags: series.tags}, Time: last, Value: value})
	}
	return out
}

// ended are the counts that no single request has.
func (s *sampler) ended(summary record.Summary, at time.Time) metrics.Samples {
	var out metrics.Samples
	add := func(metric *metrics.Metric, tags *metrics.TagSet, value uint64) {
		if value > 0 {
			out = append(out, metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: at, Value: float64(value)})
		}
	}
	add(s.own.total, s.tags, summary.Requests.Total)
	add(s.own.unsent, s.tags, summary.Requests.Unsent)
	add(s.own.retried, s.tags, summary.Requests.Retried)
	for reason, count := range summary.Requests.Skipped {
		add(s.own.skipped, s.tags.With("reason", reason), count)
	}
	return out
}

func ms(us uint64) float64 { return float64(us) / 1000 }

func when(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
