package engine

import (
	"context"
	"iter"

	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/pool"
)

// Open sends each request when it is due (open loop). The sequence gives them in the order of their due instants. When
// stop is cancelled, nothing more is sent, what is in flight is finished, and the rest of the sequence is counted as
// unsent.
func (e *Engine) Open(stop context.Context, shots iter.Seq[*exchange.Shot]) Outcome {
	quit := make(chan struct{})
	defer close(quit)
	batches := prefetch(shots, quit)
	batch, more := <-batches // the log is open and read ahead before the clock starts

	running, end := e.begin(stop, readyBefore)
	defer end()
	sleep := newSleeper(e.session.Clock)
	defer sleep.close()
	defer context.AfterFunc(running, sleep.wake)()

	var unsent uint64
	for ; more; batch, more = <-batches {
		for i, s := range batch {
			for e.session.Clock.Now() < s.DueNS && running.Err() == nil {
				sleep.until(s.DueNS)
			}
			if running.Err() != nil {
				unsent = uint64(len(batch)-i) + e.countRest(batches)
				return e.outcome(running, unsent)
			}
			e.pool.Submit(s, e.key(s, s.Client))
		}
	}
	return e.outcome(running, 0)
}

// countRest counts what the schedule still had. A second interrupt ends the counting.
func (e *Engine) countRest(batches <-chan []*exchange.Shot) uint64 {
	var n uint64
	for {
		select {
		case batch, more := <-batches:
			if !more {
				return n
			}
			n += uint64(len(batch))
		case <-e.session.Abort.Done():
			return n
		}
	}
}

// key returns whose connections a request uses. Over TLS the host is part of it, as the certificate is.
func (e *Engine) key(s *exchange.Shot, client uint32) pool.Key {
	return pool.Key{Client: client, Host: s.Host}
}
