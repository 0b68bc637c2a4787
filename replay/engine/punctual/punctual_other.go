//go:build !linux

// The portable way.

package punctual

// NewSleeper returns a sleeper for a clock that counts nanoseconds.
func NewSleeper(now func() int64) Sleeper { return newTimerSleeper(now) }

// PrioritizeThread does nothing here.
func PrioritizeThread(bool) (niceness int, restore func()) { return 0, func() {} }
