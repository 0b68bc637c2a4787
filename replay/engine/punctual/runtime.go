// Package punctual is what it takes to send on time: how Go's runtime and the sending threads are set up, and a sleep
// that ends when it should.
package punctual

import (
	"runtime"
	"runtime/debug"
)

// Runtime sets Go's runtime up for sending on time, until it is restored.
//
// The thread that sends must not wait until one that reads the log pauses: the system's scheduler, which knows
// priorities, should choose between them, not Go's. The heap is small and of constant size: collecting it a third as
// often costs little and makes fewer requests late.
func Runtime() (restore func()) {
	threads := runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	percent := debug.SetGCPercent(300)
	return func() {
		runtime.GOMAXPROCS(threads)
		debug.SetGCPercent(percent)
	}
}
