package accesslog

import (
	"context"
	"hash"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

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
