package record

import (
	"errors"
	"path/filepath"
	"sync"
	"time"
)

// Options select the optional files of a run directory.
type Options struct {
	GrinderLog bool // grinder-0-data.log
	HDRLog     bool // latency.hlog
	Limits     []Limit

	create func(path string) (file, error) // tests inject failing disks
	now    func() time.Time                // and a clock
}

// Dir is a run directory being written. All its methods may be called from many goroutines.
//
// Records are queued by Add and written by one goroutine each second (sooner, when many wait). After a failure
// of the disk nothing more is written, and Failed is closed; requests are still counted.
type Dir struct {
	path  string
	now   func() time.Time
	queue queue
	wake  chan struct{}
	stop  chan struct{}
	idle  sync.WaitGroup

	failed   chan struct{}
	failOnce sync.Once
	err      error // set before failed is closed

	// The tally has a mutex of its own, so that skipping a request does not wait while records are added up.
	tallyMu  sync.Mutex
	tally    tally
	ratePerS float64

	mu         sync.Mutex // guards what follows
	run        Run
	started    time.Time
	unrecorded unrecorded
	names      func() []string
	events     []byte // lines that wait for the flusher, as are rejects
	rejects    []byte
	rejected   int
	processor  ProcessorTime // at the start
	limited    string        // why the generator was the limit, where the records do not show it
	judge      func(Requests) string
	observe    func([]Record) // what is written; may be nil
	closed     bool
	summary    Summary
	closeErr   error

	// The flusher's own; see flusher.go.
	flush flusher
}

// Create makes the directory at path, which must not exist or be empty, and marks the run as running.
func Create(path string, run Run, opts Options) (*Dir, error) {
	if err := makeDir(path); err != nil {
		return nil, err
	}
	if opts.create == nil {
		opts.create = createFile
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	d := &Dir{
		path: path, run: run.withDefaults(), now: opts.now,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), failed: make(chan struct{}),
		names:      func() []string { return nil },
		unrecorded: unrecorded{skipped: map[string]uint64{}},
		tally:      tally{timeout: run.Load.Timeout(), limits: counting(opts.Limits)},
	}
	if err := d.open(opts); err != nil {
		d.flush.closeFiles()
		return nil, err
	}
	d.queue.taken.L = &d.queue.mu
	d.idle.Add(1)
	go d.flushEachSecond()
	return d, nil
}

func (d *Dir) open(opts Options) error {
	for name, value := range map[string]any{"run.json": d.run, "routes.json": []string{}, "errors.json": ErrorNames()} {
		if err := replaceJSON(d.file(name), value); err != nil {
			return err
		}
	}
	if err := makeReserve(d.file(reserveName)); err != nil {
		return err
	}
	return d.flush.open(d.path, opts)
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

// Path returns the directory's path as it was given.
func (d *Dir) Path() string { return d.path }

// Start sets the instant that due_ns counts from, and the files' time stamps with it. Call it before the first
// Add. An error is also found in Err.
func (d *Dir) Start(wall time.Time) error {
	d.mu.Lock()
	d.started, d.processor = wall, ProcessorTimeNow("")
	d.run.StartedAt = Instant{wall}
	run := d.run
	d.mu.Unlock()
	d.Event(Event{Name: "run", Phase: "start"})
	if err := replaceJSON(d.file("run.json"), run); err != nil {
		d.fail(err)
		return err
	}
	return nil
}

// Add records one request that is done. It copies r.
func (d *Dir) Add(r *Record) {
	filled := d.queue.add(r)
	if filled >= wakeBlocks {
		d.wakeUp()
	}
	if filled > maxBlocks {
		d.fail(ErrStalled)
	}
}

// Put records one request as Add does, at the pace at which the disk takes them: it waits where many records do. It is
// for requests that nobody measures now.
func (d *Dir) Put(r *Record) {
	if d.queue.add(r) >= wakeBlocks {
		d.wakeUp()
		d.queue.await(wakeBlocks)
	}
}

func (d *Dir) wakeUp() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// ErrStalled says that the disk under the run directory has not taken records for so long that they fill the memory.
var ErrStalled = errors.New("the disk of the output folder accepts no more records: choose a folder on another disk with --out")

// Skip counts a request that was not sent, by reason.
func (d *Dir) Skip(reason string) { d.SkipN(reason, 1) }

// SkipN counts n requests that were not sent for the same reason.
func (d *Dir) SkipN(reason string, n uint64) {
	if n == 0 {
		return
	}
	d.mu.Lock()
	d.unrecorded.skipped[reason] += n
	d.mu.Unlock()
}

// Unsent counts requests that the log holds after the instant at which the run ended early.
func (d *Dir) Unsent(n uint64) {
	d.mu.Lock()
	d.unrecorded.unsent += n
	d.mu.Unlock()
}

// Uncounted notes that there were more of them, which nobody counted.
func (d *Dir) Uncounted() {
	d.mu.Lock()
	d.unrecorded.uncounted = true
	d.mu.Unlock()
}

// Retried counts a request that was sent again, because the server closed a reused connection under it.
func (d *Dir) Retried() {
	d.mu.Lock()
	d.unrecorded.retried++
	d.mu.Unlock()
}

// SetMembers notes how many clients are logged in, with how many accounts.
func (d *Dir) SetMembers(clients, accounts int) {
	d.mu.Lock()
	d.unrecorded.members = &Members{Clients: clients, Accounts: accounts}
	d.mu.Unlock()
}

// Limited notes why the generator was the limit of what is recorded where lags do not show it: it left requests out,
// for example.
func (d *Dir) Limited(reason string) {
	d.mu.Lock()
	d.limited = reason
	d.mu.Unlock()
}

// LimitedIf has judge say, from the counts at the end, why the generator was the limit; "" that it was not.
func (d *Dir) LimitedIf(judge func(Requests) string) {
	d.mu.Lock()
	d.judge = judge
	d.mu.Unlock()
}

// Observe has a function see all records as they are written, in the goroutine that writes them. It must be set before
// the first of them is added, and keep none.
func (d *Dir) Observe(observe func([]Record)) {
	d.mu.Lock()
	d.observe = observe
	d.mu.Unlock()
}

// Reject keeps a log line that did not parse; only the first 1,000 are kept.
func (d *Dir) Reject(r Reject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rejected++; d.rejected <= maxRejects {
		d.rejects = append(d.rejects, r.line()...)
	}
}

// SetRoutes sets the function that returns the names of the routes, in the order of their numbers. names must be safe
// to call from another goroutine and know every route of the records that were added before.
func (d *Dir) SetRoutes(names func() []string) {
	d.mu.Lock()
	d.names = names
	d.mu.Unlock()
}

// Event appends an event.
func (d *Dir) Event(e Event) {
	line, err := e.MarshalJSON()
	if err != nil {
		d.fail(err)
		return
	}
	d.mu.Lock()
	d.events = append(append(d.events, line...), '\n')
	d.mu.Unlock()
}

// EventNow appends an event that happens now.
func (d *Dir) EventNow(name, phase string) {
	d.Event(Event{TNS: d.sinceStart().Nanoseconds(), Name: name, Phase: phase})
}

// StartedAt returns the instant that due_ns counts from; zero before Start.
func (d *Dir) StartedAt() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.started
}

// sinceStart is until now, or until the end that Update gave the run.
func (d *Dir) sinceStart() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started.IsZero() {
		return 0
	}
	if !d.run.EndedAt.IsZero() {
		return d.run.EndedAt.Sub(d.started)
	}
	return d.now().Sub(d.started)
}

// Update changes what run.json says from its next replacement on, as at the end: for example, the counts of the logs.
func (d *Dir) Update(change func(*Run)) {
	d.mu.Lock()
	change(&d.run)
	d.mu.Unlock()
}

// Failed returns a channel that is closed when recording has failed: the disk is full, for example. Err then returns
// why.
func (d *Dir) Failed() <-chan struct{} { return d.failed }

// Err returns why recording failed; nil until Failed is closed.
func (d *Dir) Err() error {
	select {
	case <-d.failed:
		return d.err
	default:
		return nil
	}
}

func (d *Dir) fail(err error) {
	d.failOnce.Do(func() {
		d.err = err
		close(d.failed)
	})
}

// Live is where a run stands, for its progress line.
type Live struct {
	Sent, Errors   uint64
	RatePerS       float64  // requests done per second, over the last second
	ResponseP999MS *float64 // nil for fewer than 1,000 measured requests, as is LagP999MS
	LagP999MS      *float64
	AtLeast        string // stands for ResponseP999MS where that falls on a failed request; "" elsewhere
}

// Live reports the run so far. Percentiles are up to a second behind the counts.
func (d *Dir) Live() Live {
	var l Live
	l.Sent, l.Errors = d.queue.counts()
	d.tallyMu.Lock()
	defer d.tallyMu.Unlock()
	l.RatePerS = d.ratePerS
	var censored bool
	if l.ResponseP999MS, censored = d.tally.response.percentileMS(p999); censored {
		l.AtLeast = atLeast(d.tally.response.atLeastMS())
	}
	l.LagP999MS = d.tally.lag.percentileMS(p999)
	return l
}
