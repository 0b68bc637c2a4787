package punctual

import (
	"runtime"
	"time"
)

// Lateness returns by how many nanoseconds a thread that is set up as those that send woke too late: for so long, at
// instants that are so far apart. One that it overslept counts by how late it is then, as a request would.
func Lateness(lasts, apart time.Duration) []int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer Runtime(runtime.NumCPU(), SpareThreads, RareCollections)()
	_, restore := Thread(false)
	defer restore()
	begin := time.Now()
	now := func() int64 { return int64(time.Since(begin)) }
	sleeper := NewSleeper(now)
	defer sleeper.Close()
	late := make([]int64, 0, lasts/apart)
	for due := int64(apart); due <= int64(lasts); due += int64(apart) {
		sleeper.Until(due)
		late = append(late, now()-due)
	}
	return late
}
