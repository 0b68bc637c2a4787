package accesslog

import (
	"cmp"
	"context"
	"io"
	"iter"
	"math"
	"slices"
	"sync"
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
