// Package schedule turns the instants in a log into the instants at which requests are due.
//
// It is pure: no clock, no input or output. Each stage takes a sequence and returns a sequence, and holds no more
// than a bounded number of entries, so that a log of any size is scheduled in constant memory. The stages in order:
//
//	Sort     logged order → order of logged instants, within a window
//	Spread   requests logged in the same second → spread over that second
//	Starts   instants of completion → instants of start, where the log knows how long requests took
//	Sort     again, since long requests started earlier than short ones that finished with them
//	Between  what lies between two instants of the log
//	Pace     instants of start → due instants, nanoseconds since the start of the run
package schedule

import (
	"iter"
	"sync/atomic"
)

// Entry is one request on its way through the stages.
type Entry[T any] struct {
	AtNS       int64 // the instant the stage before gave it: Unix nanoseconds, after Pace nanoseconds since the run's start
	DurationNS int64 // how long the log says it took; −1 unknown
	Value      T
}

// Seq is a sequence of entries.
type Seq[T any] = iter.Seq[Entry[T]]

// Notes counts what a schedule had to do to the log; it is complete when the sequence has ended. Of
// one that goes on, only FirstNS may be read.
type Notes struct {
	FirstNS atomic.Int64 // the logged instant that is due at 0; 0 where a rate takes the log's place

	Late   uint64 // entries further back in time than the sorting window reaches: due at once
	Steps  uint64 // steps of the log's clock back in time, followed from there on
	Spread uint64 // entries moved within their second
	Pauses uint64 // pauses of the log that were shortened, each time they were come to
	CutNS  int64  // what was cut off them in all, in the log's time
}
