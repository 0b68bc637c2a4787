package k6

import (
	"context"
	"sync"
	"time"

	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
)

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
