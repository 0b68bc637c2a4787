// Records leave the goroutines that send them: queued, and written by one goroutine each second.

package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

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

const (
	blockRecords = 1024
	wakeBlocks   = 64   // this many full blocks wake the flusher before its second is over
	keepBlocks   = 128  // empty blocks kept for use again
	maxBlocks    = 4096 // 4 M records, 400 MB: more would mean that the disk accepts nothing at all
)

type block struct {
	n       int
	records [blockRecords]Record
}

// queue holds the records between the goroutines that send and the one that writes. Senders only copy a record under a
// mutex; everything else (adding up, packing, writing) is done in the background, on whole blocks.
type queue struct {
	mu     sync.Mutex
	taken  sync.Cond // of mu: everything that waited was handed over
	last   *block
	full   []*block
	free   []*block
	sent   uint64
	errors uint64
}

// add appends a copy of r. It reports how many full blocks wait, when it has just filled one.
func (q *queue) add(r *Record) (filled int) {
	q.mu.Lock()
	b := q.last
	if b == nil {
		b = q.empty()
		q.last = b
	}
	b.records[b.n] = *r
	b.n++
	q.sent++
	if r.Error != None {
		q.errors++
	}
	if b.n == blockRecords {
		q.full = append(q.full, b)
		q.last = nil
		filled = len(q.full)
	}
	q.mu.Unlock()
	return filled
}

// await waits until fewer full blocks than that wait.
func (q *queue) await(blocks int) {
	q.mu.Lock()
	for len(q.full) >= blocks {
		q.taken.Wait()
	}
	q.mu.Unlock()
}

func (q *queue) empty() *block {
	if n := len(q.free); n > 0 {
		b := q.free[n-1]
		q.free = q.free[:n-1]
		return b
	}
	return new(block)
}

// take hands over everything that waits, appended to into.
func (q *queue) take(into []*block) []*block {
	q.mu.Lock()
	defer q.mu.Unlock()
	into = append(into, q.full...)
	clear(q.full)
	q.full = q.full[:0]
	q.taken.Broadcast()
	if q.last != nil {
		into = append(into, q.last)
		q.last = nil
	}
	return into
}

// giveBack takes blocks for use again.
func (q *queue) giveBack(blocks []*block) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range blocks {
		if len(q.free) == keepBlocks {
			break
		}
		b.n = 0
		q.free = append(q.free, b)
	}
}

func (q *queue) counts() (sent, errors uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sent, q.errors
}

// flusher owns the files that only grow; only one goroutine at a time uses it.
type flusher struct {
	records, events, rejects appendFile
	made                     os.FileInfo // requests.npy as it was made
	grinder                  *grinderLog
	hdr                      *hdrLog
	sum                      hash.Hash // of all whole records that were written
	shape                    int64     // records that the header of requests.npy shows
	routes                   int       // names in routes.json
	blocks                   []*block
	packed                   []byte
}

func (f *flusher) open(dir string, opts Options) error {
	f.sum = sha256.New()
	open := func(a *appendFile, name string) error {
		a.path = filepath.Join(dir, name)
		opened, err := opts.create(a.path)
		if err != nil {
			return explain(err, a.path)
		}
		a.f = opened
		return nil
	}
	if err := open(&f.records, "requests.npy"); err != nil {
		return err
	}
	var err error
	if f.made, err = os.Stat(f.records.path); err != nil {
		return explain(err, f.records.path)
	}
	if _, err := f.records.Write([]byte(headerText)); err != nil {
		return err
	}
	if err := open(&f.events, "events.jsonl"); err != nil {
		return err
	}
	if err := open(&f.rejects, "rejects.log"); err != nil {
		return err
	}
	if opts.GrinderLog {
		f.grinder = new(grinderLog)
		if err := open(&f.grinder.out, "grinder-0-data.log"); err != nil {
			return err
		}
		if _, err := f.grinder.out.Write([]byte(grinderHeader)); err != nil {
			return err
		}
	}
	if opts.HDRLog {
		f.hdr = newHDRLog()
		if err := open(&f.hdr.out, "latency.hlog"); err != nil {
			return err
		}
	}
	return nil
}

func (f *flusher) files() []*appendFile {
	all := []*appendFile{&f.records, &f.events, &f.rejects}
	if f.grinder != nil {
		all = append(all, &f.grinder.out)
	}
	if f.hdr != nil {
		all = append(all, &f.hdr.out)
	}
	return all
}

func (f *flusher) closeFiles() error {
	var first error
	for _, a := range f.files() {
		if a.f == nil {
			continue
		}
		if err := a.f.Close(); err != nil && first == nil {
			first = explain(err, a.path)
		}
	}
	return first
}

// firstFlush is how soon the first records are written, so that a run that is killed early has some.
const firstFlush = 200 * time.Millisecond

func (d *Dir) flushEachSecond() {
	defer d.idle.Done()
	tick := time.NewTicker(firstFlush)
	defer tick.Stop()
	last, lastSent := time.Now(), uint64(0)
	for {
		select {
		case <-d.stop:
			return
		case <-d.wake:
			d.flushOnce()
		case now := <-tick.C:
			d.flushOnce()
			if d.flush.records.written > headerSize {
				tick.Reset(time.Second)
			}
			sent, _ := d.queue.counts()
			d.tallyMu.Lock()
			d.ratePerS = float64(sent-lastSent) / max(now.Sub(last).Seconds(), 1e-3)
			d.tallyMu.Unlock()
			last, lastSent = now, sent
		}
	}
}

// flushOnce hands everything that waits to the operating system. Names of routes go before the records that
// bear their numbers, records before the header that counts them.
func (d *Dir) flushOnce() {
	if err := d.checkInPlace(); err != nil {
		d.fail(err)
	}
	f := &d.flush
	f.blocks = d.queue.take(f.blocks[:0])
	d.mu.Lock()
	names, started, observe := d.names, d.started, d.observe
	events, rejects := d.events, d.rejects
	d.events, d.rejects = nil, nil
	d.mu.Unlock()

	if err := d.writeRoutes(names()); err != nil {
		d.fail(err)
	}
	d.write(&f.events, events)
	d.write(&f.rejects, rejects)
	for _, b := range f.blocks {
		records := b.records[:b.n]
		packed := f.pack(records)
		whole := d.write(&f.records, packed) / Size * Size
		f.sum.Write(packed[:whole])
		if f.grinder != nil {
			d.write(&f.grinder.out, f.grinder.lines(records, started))
		}
		if f.hdr != nil {
			d.write(&f.hdr.out, f.hdr.lines(records, started))
		}
		d.tallyMu.Lock()
		for i := range records {
			d.tally.add(&records[i])
		}
		d.tallyMu.Unlock()
		if observe != nil {
			observe(records)
		}
	}
	d.writeShape()
	d.queue.giveBack(f.blocks)
	clear(f.blocks)
}

// write appends unless recording has failed, and returns how many bytes it wrote.
func (d *Dir) write(a *appendFile, b []byte) int {
	if len(b) == 0 || d.Err() != nil {
		return 0
	}
	n, err := a.Write(b)
	if err != nil {
		d.fail(err)
	}
	return n
}

func (f *flusher) pack(records []Record) []byte {
	f.packed = f.packed[:0]
	for i := range records {
		var b [Size]byte
		records[i].put(&b)
		f.packed = append(f.packed, b[:]...)
	}
	return f.packed
}

// writeShape sets the number of whole records in the header, also when the disk is full meanwhile.
func (d *Dir) writeShape() {
	f := &d.flush
	whole := max(f.records.written-headerSize, 0) / Size
	if whole == f.shape {
		return
	}
	if _, err := f.records.f.WriteAt([]byte(shapeText(whole)), shapeOffset); err != nil {
		d.fail(explain(err, f.records.path))
		return
	}
	f.shape = whole
}

func (d *Dir) writeRoutes(names []string) error {
	if len(names) == d.flush.routes || d.Err() != nil {
		return nil
	}
	if err := ReplaceJSON(d.file("routes.json"), names); err != nil {
		return fmt.Errorf("names of routes: %w", err)
	}
	d.flush.routes = len(names)
	return nil
}

// ErrGone says that the run directory was removed or replaced while the run wrote to it.
var ErrGone = errors.New("was removed or replaced while the run wrote to it: run this again, and leave that folder alone")

// checkInPlace returns ErrGone where the records go to a file that is no longer in the run directory: writing to it would
// not fail.
func (d *Dir) checkInPlace() error {
	found, err := os.Stat(d.flush.records.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !os.SameFile(found, d.flush.made):
		return fmt.Errorf("the run directory %s %w", d.path, ErrGone)
	}
	return nil
}
