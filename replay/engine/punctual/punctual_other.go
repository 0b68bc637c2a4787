//go:build !linux

// Other systems: a sleep on the timers of Go, and no priority.

package punctual

// NewSleeper returns a sleeper for a clock that counts nanoseconds.
func NewSleeper(now func() int64) Sleeper { return newTimerSleeper(now) }

// PrioritizeThread does nothing here.
func PrioritizeThread(bool) (niceness int, restore func()) { return 0, func() {} }
