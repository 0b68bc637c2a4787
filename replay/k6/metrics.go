package k6

// A replay's records become k6's samples.

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
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

// series is what the tags of a request come from: its route, under k6's tag `name`, and its status or kind of error.
type series struct {
	route  uint16
	status uint16
	kind   record.ErrorKind
}

// seriesCounts are the counts of a series that k6 does not have yet.
type seriesCounts struct {
	tags                                 *metrics.TagSet
	requests, queued, errors, mismatches float64
}

// sampler makes records into samples. Not safe for concurrent use.
type sampler struct {
	own     *replayMetrics
	builtin *metrics.BuiltinMetrics
	tags    *metrics.TagSet
	route   func(number uint16) string
	started time.Time
	known   map[series]*seriesCounts
}

func (s *sampler) of(key series) *seriesCounts {
	c, ok := s.known[key]
	if !ok {
		c = &seriesCounts{tags: s.tags.With("name", s.route(key.route)).With("status", strconv.Itoa(int(key.status)))}
		if key.kind != record.None {
			c.tags = c.tags.With("error", key.kind.String())
		}
		s.known[key] = c
	}
	return c
}

// Samples of one request; its counts come together with others'.
const mostSamples = 4

// samples returns the samples of some requests; the warm-up has none. k6's own metrics keep their meaning:
// http_req_duration is sending, waiting and receiving, without the opening of a connection; http_req_failed means a
// missing response, or a status of 400 or more. Counters get one sample per series, since k6 takes time for each.
func (s *sampler) samples(records []record.Record) metrics.Samples {
	out := make(metrics.Samples, 0, len(records)*mostSamples+len(s.known))
	var at time.Time
	for i := range records {
		r := &records[i]
		if r.Flags&record.Warmup != 0 {
			continue
		}
		c := s.of(series{r.Route, r.Status, r.Error})
		at = s.started.Add(time.Duration(r.DoneNS()))
		opening := min(uint64(r.ConnectUS)+uint64(r.TLSUS)+uint64(r.DNSUS), uint64(r.TotalUS))
		out = append(out,
			sample(s.builtin.HTTPReqDuration, c.tags, at, ms(uint64(r.TotalUS)-opening)),
			sample(s.builtin.HTTPReqFailed, c.tags, at, when(r.Error != record.None || r.Status >= 400)),
			sample(s.own.response, c.tags, at, ms(r.ResponseUS())))
		c.requests++
		if r.Flags&record.Queued == 0 {
			out = append(out, sample(s.own.lag, c.tags, at, ms(uint64(r.LagUS))))
		} else {
			c.queued++
		}
		if r.Error != record.None {
			c.errors++
		} else if r.LoggedStatus != 0 && r.LoggedStatus != r.Status {
			c.mismatches++
		}
	}
	return s.counts(out, at)
}

// counts adds what was counted since the last call.
func (s *sampler) counts(out metrics.Samples, at time.Time) metrics.Samples {
	for _, c := range s.known {
		for _, one := range []struct {
			metric *metrics.Metric
			value  float64
		}{
			{s.builtin.HTTPReqs, c.requests}, {s.own.queued, c.queued}, {s.own.errors, c.errors}, {s.own.mismatches, c.mismatches},
		} {
			if one.value > 0 {
				out = append(out, sample(one.metric, c.tags, at, one.value))
			}
		}
		*c = seriesCounts{tags: c.tags}
	}
	return out
}

// totals returns the counts that no single request has.
func (s *sampler) totals(summary record.Summary, at time.Time) metrics.Samples {
	var out metrics.Samples
	add := func(metric *metrics.Metric, tags *metrics.TagSet, value uint64) {
		if value > 0 {
			out = append(out, sample(metric, tags, at, float64(value)))
		}
	}
	for metric, known := range map[*metrics.Metric]*uint64{s.own.total: summary.Requests.Total, s.own.unsent: summary.Requests.Unsent} {
		if known != nil {
			add(metric, s.tags, *known)
		}
	}
	add(s.own.retried, s.tags, summary.Requests.Retried)
	for reason, count := range summary.Requests.Skipped {
		add(s.own.skipped, s.tags.With("reason", reason), count)
	}
	return out
}

func sample(metric *metrics.Metric, tags *metrics.TagSet, at time.Time, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: at, Value: value}
}

func ms(us uint64) float64 { return float64(us) / 1000 }

func when(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

const (
	feedEvery   = 100 * time.Millisecond
	feedRecords = 8192 // records at a time, so that k6 gets no single huge batch
)

// feeder gives k6 the samples of a replay in the background: the goroutines that send only copy a record.
type feeder struct {
	sampler *sampler
	into    chan<- metrics.SampleContainer
	ctx     context.Context
	mu      sync.Mutex
	waiting []record.Record
	spare   []record.Record
	quit    chan struct{}
	ended   chan struct{}
}

func newFeeder(i *instance, replay *run.Replay) *feeder {
	state := i.vu.State()
	f := &feeder{
		sampler: &sampler{
			own: i.metrics, builtin: state.BuiltinMetrics, tags: state.Tags.GetCurrentValues().Tags,
			route: replay.Route, known: map[series]*seriesCounts{},
		},
		// k6 takes samples until the iteration has ended; the last ones come after it was told to.
		into: state.Samples, ctx: context.WithoutCancel(i.vu.Context()),
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	go f.feed(replay)
	return f
}

// add takes a record. It is called from many goroutines.
func (f *feeder) add(r *record.Record) {
	f.mu.Lock()
	f.waiting = append(f.waiting, *r)
	f.mu.Unlock()
}

func (f *feeder) feed(replay *run.Replay) {
	defer close(f.ended)
	ticker := time.NewTicker(feedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.flush(replay)
		case <-f.quit:
			f.flush(replay)
			return
		}
	}
}

func (f *feeder) flush(replay *run.Replay) {
	f.mu.Lock()
	f.waiting, f.spare = f.spare[:0], f.waiting
	f.mu.Unlock()
	f.sampler.started = replay.Dir.StartedAt()
	for first := 0; first < len(f.spare); first += feedRecords {
		samples := f.sampler.samples(f.spare[first:min(first+feedRecords, len(f.spare))])
		if len(samples) > 0 {
			metrics.PushIfNotDone(f.ctx, f.into, samples)
		}
	}
}

// end gives what is left, and what the whole run counts.
func (f *feeder) end(summary record.Summary) {
	close(f.quit)
	<-f.ended
	if samples := f.sampler.totals(summary, time.Now()); len(samples) > 0 {
		metrics.PushIfNotDone(f.ctx, f.into, samples)
	}
}
