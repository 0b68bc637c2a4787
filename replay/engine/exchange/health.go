// Is the target there at all, and which kind of error is it?

package exchange

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// A target counts as dead when this many requests in a row, over this long, found nobody to connect to. A slow server
// does not fall under it, nor one that restarts.
const (
	deadRequests = 50
	DeadAfter    = 15 * time.Second
)

// Health watches whether the target is there at all.
type Health struct {
	firstFailure atomic.Pointer[error] // of opening a connection

	mu      sync.Mutex
	inRow   atomic.Int64
	sinceNS int64
	OnDeath func() // called once, when the target counts as dead; nil: it never does
}

func (h *Health) note(now int64, kind record.ErrorKind) {
	if kind == record.None && h.inRow.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch kind {
	case record.ConnectRefused, record.ConnectFailed, record.TLSFailed:
		inRow := h.inRow.Add(1)
		if inRow == 1 {
			h.sinceNS = now
		}
		if inRow >= deadRequests && now-h.sinceNS > DeadAfter.Nanoseconds() && h.OnDeath != nil {
			h.OnDeath()
			h.OnDeath = nil
		}
	case record.Timeout:
		// Unknown: neither alive nor dead.
	default:
		h.inRow.Store(0)
	}
}

// ConnectFailed keeps the first reason for which a connection could not be opened.
func (h *Health) ConnectFailed(err error) { h.firstFailure.CompareAndSwap(nil, &err) }

// Warning returns why connections could not be opened, and the remedy; nil when all could.
func (h *Health) Warning() error {
	first := h.firstFailure.Load()
	switch {
	case first == nil:
		return nil
	case errors.Is(*first, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("connections could not be opened because this machine ran out of ports (%w): give more addresses with --source-address, widen net.ipv4.ip_local_port_range, or use fewer connections",
			*first)
	case errors.Is(*first, syscall.EMFILE), errors.Is(*first, syscall.ENFILE):
		return fmt.Errorf("connections could not be opened because this process reached its limit of open files (%w): raise `ulimit -n`, or lower --max-connections",
			*first)
	}
	return fmt.Errorf("connections could not be opened; the first failure: %w", *first)
}

// KindOf names an error for errors.json.
func KindOf(err error) record.ErrorKind {
	var handshake target.HandshakeError
	var op *net.OpError
	switch {
	case err == nil:
		return record.None
	case errors.As(err, &handshake):
		if target.IsTimeout(err) {
			return record.Timeout
		}
		return record.TLSFailed
	case target.IsTimeout(err):
		return record.Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return record.ConnectRefused
	case errors.As(err, &op) && op.Op == "dial":
		return record.ConnectFailed
	case errors.Is(err, wire.ErrBadResponse):
		return record.BadResponse
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return record.Reset
	case errors.Is(err, wire.ErrClosedEarly), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return record.ClosedEarly
	}
	return record.Other
}
