// Package punctual is what it takes to send on time: how Go's runtime and the sending threads are set up, and a sleep
// that ends when it should.
package punctual

import (
	"runtime"
	"runtime/debug"
)

// How much garbage there may be for what is in use, in percent, until it is collected.
const (
	// Where the heap is small and of constant size, as in the open loop, collecting it a third as often costs little and
	// makes fewer requests late.
	RareCollections = 300
	// Where it grows with the number of users, it should not grow by three times what they need.
	SmallHeap = 100
)

// SpareThreads is how many threads more than cores there should be where requests are due at instants: the thread that
// sends must not wait until one that reads the log pauses, and the system's scheduler, which knows priorities, should
// choose between them, not Go's.
const SpareThreads = 2

// Runtime sets Go's runtime up for sending on time, with so many threads more than cores, until it is restored.
func Runtime(cores, spare, garbagePercent int) (restore func()) {
	threads := runtime.GOMAXPROCS(cores + spare)
	percent := debug.SetGCPercent(garbagePercent)
	return func() {
		runtime.GOMAXPROCS(threads)
		debug.SetGCPercent(percent)
	}
}
