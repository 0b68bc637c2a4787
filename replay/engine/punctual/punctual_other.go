//go:build !linux

// The portable way.

package punctual

// NewSleeper returns a sleeper for a clock that counts nanoseconds.
func NewSleeper(now func() int64) Sleeper { return newTimerSleeper(now) }

// Thread does nothing here.
func Thread(bool) (niceness int, restore func()) { return 0, func() {} }
