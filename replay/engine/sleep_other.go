//go:build !linux

package engine

import "plimsoll/replay/engine/exchange"

func newSleeper(c exchange.Clock) sleeper { return newTimerSleeper(c) }
