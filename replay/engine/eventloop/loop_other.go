//go:build !linux

// Other systems have no event loop.

package eventloop

import (
	"context"
	"errors"
	"time"

	"plimsoll/replay/engine/exchange"
)

// Supported reports whether this system has event loops.
const Supported = false

// Loop is nothing here.
type Loop struct{}

// New returns an error.
func New(*exchange.RunState, exchange.Bounds, exchange.AttemptSource) (*Loop, error) {
	return nil, errors.ErrUnsupported
}

// Wake does nothing.
func (*Loop) Wake() {}

// Unsent returns 0.
func (*Loop) Unsent() uint64 { return 0 }

// ProcessorTime returns 0.
func (*Loop) ProcessorTime() time.Duration { return 0 }

// Run does nothing.
func (*Loop) Run(context.Context) {}
