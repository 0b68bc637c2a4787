package record

import "sync"

const (
	blockRecords = 1024
	wakeBlocks   = 64   // this many full blocks wake the flusher before its second is over
	keepBlocks   = 128  // empty blocks kept for use again
	maxBlocks    = 4096 // 4 M records, 300 MB: more would mean that the disk accepts nothing at all
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
