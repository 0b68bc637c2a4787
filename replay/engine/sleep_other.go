//go:build !linux

package engine

func newSleeper(c clock) sleeper { return newTimerSleeper(c) }
