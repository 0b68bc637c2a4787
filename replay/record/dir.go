// A run directory as it is written, from Create to Close.

package record

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/replay/redact"
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

	// Only the flusher uses it; see write.go.
	flush flusher
}

// Create makes the directory at path, which must not exist or be empty, and marks the run as running.
func Create(path string, run Run, opts Options) (*Dir, error) {
	if err := makeDir(path); err != nil {
		return nil, err
	}
	if opts.create == nil {
		opts.create = func(path string) (file, error) { return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) }
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	d := &Dir{
		path: path, run: run.withDefaults(), now: opts.now,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), failed: make(chan struct{}),
		names:      func() []string { return nil },
		unrecorded: unrecorded{skipped: map[string]uint64{}},
		tally:      tally{timeout: run.Load.Timeout(), limits: countedLimits(opts.Limits)},
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
		if err := ReplaceJSON(d.file(name), value); err != nil {
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
	if err := ReplaceJSON(d.file("run.json"), run); err != nil {
		d.fail(err)
		return err
	}
	return nil
}

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

// MarkLimited notes why the generator was the limit of what is recorded where lags do not show it: it left requests out,
// for example.
func (d *Dir) MarkLimited(reason string) {
	d.mu.Lock()
	d.limited = reason
	d.mu.Unlock()
}

// JudgeLimited has a function say, from the counts at the end, why the generator was the limit; "" that it was not.
func (d *Dir) JudgeLimited(judge func(Requests) string) {
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

// Close writes what is left, summary.json and the end of run.json. When recording failed before, the status is
// Failed and the error is returned, whatever the caller says; the summary counts all requests even so. A run that is
// said to be complete has failed where its target died. The summary says how it ended. Later calls return what the
// first one did.
func (d *Dir) Close(status Status, reason string) (Summary, error) {
	d.mu.Lock()
	if d.closed {
		defer d.mu.Unlock()
		return d.summary, d.closeErr
	}
	d.closed = true
	d.mu.Unlock()

	d.EventNow("run", "stop")
	close(d.stop)
	d.idle.Wait()
	d.flushOnce()
	if d.flush.hdr != nil {
		d.write(&d.flush.hdr.out, d.flush.hdr.end(d.started))
	}
	if err := d.flush.closeFiles(); err != nil {
		d.fail(err)
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	d.tallyMu.Lock()
	defer d.tallyMu.Unlock()
	d.summary = summarize(&d.tally, d.unrecorded, d.names())
	d.summary.Records = hex.EncodeToString(d.flush.sum.Sum(nil))
	d.closeErr = errors.Join(d.Err(), d.finish(endStatus(status, reason, d.tally.silence.verdict(d.tally.endNS))))
	return d.summary, d.closeErr
}

// finish writes the two files that say how the run ended. The summary first: whoever finds a run that is
// complete finds its summary.
func (d *Dir) finish(status Status, reason string) error {
	if err := d.Err(); err != nil {
		status, reason = Failed, err.Error()
	}
	if errors.Is(d.Err(), ErrGone) { // what is in its place is somebody else's
		d.summary.Status, d.summary.Reason = status, reason
		return nil
	}
	os.Remove(d.file(reserveName))
	if d.summary.GeneratorLimited { // late, by the records
		d.summary.GeneratorLimitedReason += ProcessorTimeNow("").stolenSince(d.processor)
	}
	if d.limited == "" && d.judge != nil {
		d.limited = d.judge(d.summary.Requests)
	}
	if d.limited != "" {
		d.summary.GeneratorLimited, d.summary.GeneratorLimitedReason = true, d.limited
	}
	d.summary.Status = status
	d.summary.Limits = d.tally.verdicts(&d.summary)
	summaryErr := ReplaceJSON(d.file("summary.json"), d.summary)
	if summaryErr != nil && status == Complete {
		status, reason = Failed, summaryErr.Error()
	}
	d.summary.Status, d.summary.Reason = status, reason
	d.run.Status, d.run.Reason = status, textOrNull(reason)
	if d.run.EndedAt.IsZero() { // else it is the end of a run that was
		d.run.EndedAt = Instant{d.now()}
	}
	d.run.GeneratorLimited = d.summary.GeneratorLimited
	d.run.GeneratorLimitedReason = textOrNull(d.summary.GeneratorLimitedReason)
	return errors.Join(summaryErr, ReplaceJSON(d.file("run.json"), d.run))
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Event is one line of events.jsonl: what happened, and when since the start of the run.
type Event struct {
	TNS   int64
	Name  string
	Phase string         // usually "start" or "stop"; left out where empty
	More  map[string]any // further keys, which belong to the event
}

// MarshalJSON puts t_ns, event and phase first, so that the lines are easy to read, then the rest by name.
func (e Event) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string, value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		name, _ := json.Marshal(key)
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
		return nil
	}
	if err := put("t_ns", e.TNS); err != nil {
		return nil, err
	}
	if err := put("event", e.Name); err != nil {
		return nil, err
	}
	if e.Phase != "" {
		if err := put("phase", e.Phase); err != nil {
			return nil, err
		}
	}
	keys := make([]string, 0, len(e.More))
	for key := range e.More {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := put(key, e.More[key]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

const (
	maxRejects     = 1000
	maxRejectBytes = 2000 // of a rejected line's own text
)

// Reject is a log line that did not parse.
type Reject struct {
	File      string
	Line      uint64
	Specifier string // the one that failed, such as "%h"; may be empty
	Column    int    // from 1, in bytes; 0 unknown
	Why       string
	Text      []byte // the line as it was; its secrets are not kept
}

// line returns the reject on one line without control characters, so that it can do no harm on a terminal.
func (r Reject) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", escape(r.File), r.Line, r.Column)
	if r.Specifier != "" {
		b.WriteString(escape(r.Specifier) + ": ")
	}
	b.WriteString(escape(r.Why) + ": ")
	text := redact.Line(string(r.Text))
	if len(text) > maxRejectBytes {
		fmt.Fprintf(&b, "%s… (%d bytes)", escape(text[:maxRejectBytes]), len(r.Text))
	} else {
		b.WriteString(escape(text))
	}
	b.WriteByte('\n')
	return b.String()
}

// escape writes what is not printable, and the backslash, as Go's string literals do; quotes stay.
func escape(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
