//go:build !linux

package punctual

// NewSleeper returns a sleeper for a clock that counts nanoseconds.
func NewSleeper(now func() int64) Sleeper { return newTimerSleeper(now) }
