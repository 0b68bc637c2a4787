package accesslog

// Logs are read on all cores, and merged by time.

import (
	"bytes"
	"cmp"
	"context"
	"hash"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Batch is a run of requests in the order of the log.
type Batch struct {
	Requests []Request
	chunk    *chunk
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

// Release gives the memory of the requests back. Neither the batch nor the bytes of its requests may be used after.
func (b *Batch) Release() {
	b.chunk.release()
	b.Requests, b.chunk = nil, nil
	batches.Put(b)
}

// Read reads the log once, parsing on all cores in constant memory, and yields its requests in batches: the lines of
// a file in their order, the files merged by time. Files that do not overlap, as those of a rotated set, are opened
// one after the other. Each batch is the receiver's until it releases it. After an error nothing more is yielded.
func (s *Source) Read(ctx context.Context, f *Format, opts ReadOptions) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		p := s.pipeline(ctx, opts)
		m := merger{pipeline: p, rejectsLeft: p.opts.MaxRejects, strays: map[int]*Strays{}}
		for i := range opts.Strays {
			m.strays[opts.Strays[i].File] = &opts.Strays[i]
		}
		defer p.wg.Wait()
		defer p.cancel()
		p.work(f, func(_ int, f *Format, c *chunk) {
			c.parse(f, true, p.opts.MaxRejects)
			c.parsed <- struct{}{}
		})
		err := m.plan(f)
		for err == nil {
			var batch *Batch
			if batch, err = m.next(); batch == nil {
				break
			}
			if !yield(batch, nil) {
				return
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Each calls use for every valid request in the order of the logs, until use returns false. Instants are corrected by what
// Count found of strays and steps back, if it was asked (found may be nil), and targets are paths where they were absolute URLs.
func (s *Source) Each(ctx context.Context, f *Format, found *Totals, use func(r *Request) bool) error {
	var opts ReadOptions
	if found != nil {
		opts.Strays, opts.SetBacks = found.Strays, found.SetBacks
	}
	for batch, err := range s.Read(ctx, f, opts) {
		if err != nil {
			return err
		}
		more := true
		for i := range batch.Requests {
			batch.Requests[i].toOrigin()
			if more = use(&batch.Requests[i]); !more {
				break
			}
		}
		batch.Release()
		if !more {
			return nil
		}
	}
	return nil
}

// fileStream is one file being read: its chunks come parsed and in order.
type fileStream struct {
	chunks chan *chunk
	failed chan error
	chunk  *chunk
	at     int    // the next request in the chunk
	clock  *clock // nil: the file has no strays
	steps  []SetBack
}

func (t *fileStream) timeNS() int64 { return t.chunk.requests[t.at].TimeNS }

// merger merges files by time. Only files whose time has come are open.
type merger struct {
	*pipeline
	waiting     []waitingFile // not opened yet, the earliest first
	open        []*fileStream
	rejectsLeft int
	strays      map[int]*Strays // by file
}

type waitingFile struct {
	index   int
	firstNS int64
}

// plan finds out when each file begins.
func (m *merger) plan(f *Format) error {
	for i := range m.source.files {
		first := int64(math.MinInt64)
		if strays := m.strays[i]; strays != nil {
			first = strays.FirstNS
		} else if len(m.source.files) > 1 {
			var err error
			if first, err = m.source.firstNS(i, f.Clone()); err != nil {
				return err
			}
		}
		for _, step := range m.opts.SetBacks {
			if step.File == i && step.Line == 0 && first != math.MinInt64 {
				first += step.ByNS
			}
		}
		m.waiting = append(m.waiting, waitingFile{i, first})
	}
	slices.SortStableFunc(m.waiting, func(a, b waitingFile) int { return cmp.Compare(a.firstNS, b.firstNS) })
	return nil
}

// firstNS returns the time of the first request in the head of a file.
func (s *Source) firstNS(i int, f *Format) (int64, error) {
	one := Source{files: s.files[i : i+1]}
	lines, err := one.Head(headLines)
	if err != nil {
		return 0, err
	}
	var r Request
	for _, line := range lines {
		if Ignored(line) {
			f.comment(line)
		} else if f.Parse(line, &r) == nil {
			return r.TimeNS, nil
		}
	}
	return math.MinInt64, nil
}

// next returns the next run of requests; nil at the end.
func (m *merger) next() (*Batch, error) {
	if len(m.open) == 0 && len(m.waiting) > 0 {
		if err := m.openNext(); err != nil {
			return nil, err
		}
		return m.next()
	}
	if len(m.open) == 0 {
		return nil, nil
	}
	first := m.open[0]
	for _, t := range m.open[1:] {
		if t.timeNS() < first.timeNS() {
			first = t
		}
	}
	for len(m.waiting) > 0 && m.waiting[0].firstNS <= first.timeNS() {
		if err := m.openNext(); err != nil {
			return nil, err
		}
		if t := m.open[len(m.open)-1]; t.timeNS() < first.timeNS() {
			first = t
		}
	}
	limit := int64(math.MaxInt64)
	for _, t := range m.open {
		if t != first {
			limit = min(limit, t.timeNS())
		}
	}
	if len(m.waiting) > 0 {
		limit = min(limit, m.waiting[0].firstNS)
	}
	return m.take(first, limit)
}

// take cuts off what a stream has up to a time, at least one request.
func (m *merger) take(t *fileStream, limitNS int64) (*Batch, error) {
	requests := t.chunk.requests
	end := t.at + 1
	for end < len(requests) && requests[end].TimeNS <= limitNS {
		end++
	}
	b := batches.Get().(*Batch)
	b.Requests, b.chunk = requests[t.at:end:end], t.chunk
	b.chunk.refs.Add(1)
	t.at = end
	if end < len(requests) {
		return b, nil
	}
	more, err := m.advance(t)
	if err != nil {
		b.Release()
		return nil, err
	}
	if !more {
		m.open = slices.DeleteFunc(m.open, func(o *fileStream) bool { return o == t })
	}
	return b, nil
}

// openNext starts reading the earliest file that waits.
func (m *merger) openNext() error {
	i := m.waiting[0].index
	m.waiting = m.waiting[1:]
	size := max(minChunkBytes, chunkBytes/(1+len(m.open)))
	t := &fileStream{chunks: make(chan *chunk, m.opts.Workers), failed: make(chan error, 1)}
	if strays := m.strays[i]; strays != nil {
		t.clock = &clock{strays: strays, lastNS: strays.FirstNS}
	}
	for _, step := range m.opts.SetBacks {
		if step.File == i {
			t.steps = append(t.steps, step)
		}
	}
	m.wg.Add(1)
	go func() {
		defer m.wg.Done()
		defer close(t.chunks)
		if err := m.cut(i, size, t.chunks, nil); err != nil {
			t.failed <- err
		}
	}()
	more, err := m.advance(t)
	if more {
		m.open = append(m.open, t)
	}
	return err
}

// advance moves a stream to its next chunk that has requests. It returns false at the end of the file.
func (m *merger) advance(t *fileStream) (more bool, err error) {
	for {
		if t.chunk != nil {
			t.chunk.release()
			t.chunk = nil
		}
		c, ok := <-t.chunks
		if !ok {
			select {
			case err = <-t.failed:
			default:
			}
			return false, err
		}
		select {
		case <-c.parsed:
		case <-m.ctx.Done():
			return false, m.ctx.Err()
		}
		for _, r := range c.rejects {
			if m.rejectsLeft > 0 {
				m.rejectsLeft--
				m.opts.OnReject(r)
			}
		}
		t.chunk, t.at = c, 0
		if t.clock != nil {
			for i := range c.requests {
				c.requests[i].TimeNS = t.clock.correct(c.requests[i].TimeNS)
			}
		}
		for _, step := range t.steps {
			for i := range c.requests {
				if c.requests[i].Line >= step.Line {
					c.requests[i].TimeNS += step.ByNS
				}
			}
		}
		if len(c.requests) > 0 {
			return true, nil
		}
		if c.err != nil && c.err != io.EOF {
			return false, c.err
		}
	}
}

// ReadOptions say how a log is read. The zero value reads it on all cores.
type ReadOptions struct {
	// OnReject is called for rejected lines, in the order of the log, at most MaxRejects times (0 means 1,000).
	OnReject   func(Reject)
	MaxRejects int
	// Progress is called now and then with the bytes read from disk so far, and all that there are: -1 if not known.
	Progress func(doneBytes, totalBytes int64)
	// Workers is the number of goroutines that parse; 0 means one for each core.
	Workers int
	// Sums asks Count for the sums of the files.
	Sums bool
	// Pause asks Count for pauses longer than this, 1.4 s at least; 0 means LongPause.
	Pause time.Duration
	// Strays are those that Count found; Read corrects their instants.
	Strays []Strays
	// SetBacks are those that Count found; Read corrects what follows them.
	SetBacks []SetBack

	chunkBytes int // set by tests
}

func (o ReadOptions) withDefaults() ReadOptions {
	if o.MaxRejects == 0 {
		o.MaxRejects = 1000
	}
	if o.Pause == 0 {
		o.Pause = LongPause
	}
	if o.OnReject == nil {
		o.MaxRejects = 0
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// pipeline is a group of workers that parse chunks in any order.
type pipeline struct {
	source *Source
	opts   ReadOptions
	ctx    context.Context
	cancel context.CancelFunc
	jobs   chan *chunk
	wg     sync.WaitGroup
	named  bool         // comments name the fields of the lines after them
	done   atomic.Int64 // bytes read from disk
}

func (s *Source) pipeline(ctx context.Context, opts ReadOptions) *pipeline {
	p := &pipeline{source: s, opts: opts.withDefaults()}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.jobs = make(chan *chunk, p.opts.Workers)
	return p
}

// work starts the workers; each has its own Format.
func (p *pipeline) work(f *Format, handle func(worker int, f *Format, c *chunk)) {
	p.named = f.base.namesFields
	for i := range p.opts.Workers {
		p.wg.Add(1)
		go func(f *Format) {
			defer p.wg.Done()
			for {
				select {
				case c, ok := <-p.jobs:
					if !ok {
						return
					}
					handle(i, f, c)
				case <-p.ctx.Done():
					return
				}
			}
		}(f.Clone())
	}
}

// cut reads file i and sends its chunks to the workers, and to ordered if that is not nil; all text goes into sum, if
// that is not nil. It returns at the end of the file, on an error, or when the pipeline is stopped.
func (p *pipeline) cut(i, size int, ordered chan<- *chunk, sum hash.Hash) error {
	if p.opts.chunkBytes > 0 {
		size = p.opts.chunkBytes
	}
	file, err := p.source.open(i, true)
	if err != nil {
		return err
	}
	defer file.Close()
	k := cutter{file: file, index: i, size: size, sum: sum, nuls: file.nuls, named: p.named}
	for left := file.nuls; left > 0; left -= int64(len(zeros)) {
		k.add(zeros[:min(left, int64(len(zeros)))])
	}
	total, before := p.source.Size(), int64(0)
	for {
		c := k.next()
		n := file.counter.n
		p.opts.Progress(p.done.Add(n-before), total)
		before = n
		err := c.err
		if !p.send(p.jobs, c) || ordered != nil && !p.send(ordered, c) {
			return p.ctx.Err()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// zeros are what a log may begin with, for its sum.
var zeros [4 << 10]byte

func (p *pipeline) send(to chan<- *chunk, c *chunk) bool {
	if p.ctx.Err() != nil {
		return false
	}
	select {
	case to <- c:
		return true
	case <-p.ctx.Done():
		return false
	}
}

const (
	chunkBytes    = 1 << 20  // of text that one worker parses at a time
	minChunkBytes = 64 << 10 // when many files are read side by side
	rejectText    = 512      // bytes of a rejected line that are kept
)

// textWithheld stands for a rejected line of a recording, which may hold a password where nobody can find it any more.
const textWithheld = "(not shown: a recording may hold passwords)"

// chunk is a stretch of one file that ends with a line, and what was parsed of it.
type chunk struct {
	text      []byte
	file      int
	firstLine uint64
	fields    []byte // the comment before it that names its fields; nil: there is none, or nobody asked
	overlong  bool   // the text is the beginning of one line that is too long

	requests []Request
	arena    []byte
	rejects  []Reject
	counts   Counts
	binNS    int64     // how long a stretch may be; 0: nobody asked for them
	bin      int64     // where the last stretch begins at the earliest
	spread   []stretch // where in time the requests lie, one stretch after the other as the lines have them

	finished bool    // times are those of completion
	stamps   []stamp // of its requests
	ends     bool    // they are those of completion

	err    error         // why reading ended here; io.EOF at the end of the file
	parsed chan struct{} // holds a token once a worker is done
	refs   atomic.Int32
}

var chunks = sync.Pool{New: func() any { return &chunk{parsed: make(chan struct{}, 1)} }}

func newChunk() *chunk {
	c := chunks.Get().(*chunk)
	c.text, c.requests, c.arena, c.rejects = c.text[:0], c.requests[:0], c.arena[:0], nil
	c.counts, c.err, c.overlong = Counts{}, nil, false
	c.binNS, c.spread, c.stamps, c.ends = 0, c.spread[:0], c.stamps[:0], true
	c.refs.Store(1)
	return c
}

// release gives the chunk back once nobody holds it. One that a long line has enlarged is left to the garbage
// collector.
func (c *chunk) release() {
	if c.refs.Add(-1) == 0 && cap(c.text) <= chunkBytes {
		chunks.Put(c)
	}
}

// parse parses all lines of a chunk. The requests are kept if keep is set; no more than maxRejects rejects are.
func (c *chunk) parse(f *Format, keep bool, maxRejects int) {
	f.arena = c.arena[:0]
	f.from(c.fields)
	var one Request
	number := c.firstLine
	for text := c.text; len(text) > 0; number++ {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		c.counts.Lines++
		if Ignored(line) {
			rest := bytes.TrimLeft(line, "\x00")
			c.counts.NULs += int64(len(line) - len(rest))
			if len(rest) == 0 && len(line) > 0 && text == nil { // what a file ends with is not a line
				c.counts.Lines--
				break
			}
			if Ignored(rest) {
				c.counts.Ignored++
				f.comment(rest)
				continue
			}
			line = rest
		}
		r := &one
		if keep {
			r = c.grow()
		} else {
			f.arena = f.arena[:0]
		}
		r.Line, r.File = number, c.file
		reject := c.parseLine(f, line, r)
		if reject == nil {
			c.counts.add(r)
			if c.binNS > 0 {
				c.place(r)
				s, end := stampOf(r, c.finished)
				c.stamps, c.ends = append(c.stamps, s), c.ends && end
			}
			continue
		}
		c.counts.Failed++
		if keep {
			c.requests = c.requests[:len(c.requests)-1]
		}
		if len(c.rejects) < maxRejects {
			text := bytes.Clone(clip(line, rejectText))
			if f.hasBodies {
				text = []byte(textWithheld)
			}
			c.rejects = append(c.rejects, Reject{File: c.file, Line: number, Text: text, Mismatch: reject.Clone(line)})
		}
	}
	c.arena = f.arena
}

// place adds a request to the last stretch, or begins another where that one cannot take it.
func (c *chunk) place(r *Request) {
	if len(c.spread) == 0 || uint64(r.TimeNS-c.bin) >= uint64(c.binNS) {
		c.bin = (r.TimeNS+beforeNS)/c.binNS*c.binNS - beforeNS
		c.spread = append(c.spread, stretch{firstNS: r.TimeNS, lastNS: r.TimeNS, file: r.File, line: r.Line, low: r.Line})
	}
	s := &c.spread[len(c.spread)-1]
	s.requests++
	s.high = r.Line
	if r.TimeNS < s.firstNS {
		s.firstNS, s.line = r.TimeNS, r.Line
	}
	s.lastNS = max(s.lastNS, r.TimeNS)
}

func (c *chunk) parseLine(f *Format, line []byte, r *Request) *Mismatch {
	if c.overlong || len(line) > MaxLineBytes {
		f.reject = Mismatch{Specifier: "line", Column: MaxLineBytes + 1, Why: "is longer than 1 MiB"}
		return &f.reject
	}
	return f.parse(line, r)
}

// grow makes room for one more request.
func (c *chunk) grow() *Request {
	if n := len(c.requests); n < cap(c.requests) {
		c.requests = c.requests[:n+1]
	} else {
		c.requests = append(c.requests, Request{})
	}
	return &c.requests[len(c.requests)-1]
}
