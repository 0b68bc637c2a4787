package engine

import (
	"sync"
	"time"

	"plimsoll/replay/record"
)

// A target counts as dead when this many requests in a row, over this long, found nobody to connect to. A slow server does not
// fall under it, nor one that restarts.
const (
	deadRequests = 50
	deadAfter    = 15 * time.Second
)

// health watches whether the target is there at all.
type health struct {
	mu      sync.Mutex
	inRow   int
	sinceNS int64
	onDeath func()
}

func (h *health) note(now int64, kind record.ErrorKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch kind {
	case record.ConnectRefused, record.ConnectFailed, record.TLSFailed:
		if h.inRow == 0 {
			h.sinceNS = now
		}
		h.inRow++
		if h.inRow >= deadRequests && now-h.sinceNS > deadAfter.Nanoseconds() && h.onDeath != nil {
			h.onDeath()
			h.onDeath = nil
		}
	case record.Timeout:
		// Nobody knows: neither alive nor dead.
	default:
		h.inRow = 0
	}
}
