package engine

import (
	"iter"

	"plimsoll/replay/engine/exchange"
)

// Requests are read ahead of the engine, in batches, so that reading the log never makes it late.
const (
	prefetchBatch   = 64
	prefetchBatches = 64
)

// prefetch runs a sequence in its own goroutine. The channel is closed when the sequence has ended.
func prefetch(shots iter.Seq[*exchange.Shot], quit <-chan struct{}) <-chan []*exchange.Shot {
	out := make(chan []*exchange.Shot, prefetchBatches)
	go func() {
		defer close(out)
		batch := make([]*exchange.Shot, 0, prefetchBatch)
		for s := range shots {
			batch = append(batch, s)
			if len(batch) < prefetchBatch {
				continue
			}
			select {
			case out <- batch:
			case <-quit:
				return
			}
			batch = make([]*exchange.Shot, 0, prefetchBatch)
		}
		if len(batch) > 0 {
			select {
			case out <- batch:
			case <-quit:
			}
		}
	}()
	return out
}
