// Package exchange describes one request and its answer: what to send and when, what is measured, and how that becomes
// a record. Loops and connections share it. It opens no connections and decides nothing.
package exchange

import (
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Hit is one request of a log: what to send, and what the log knows of its first answer.
type Hit struct {
	wire.Request
	Client       uint32 // whose connections it uses
	Route        uint16
	LoggedStatus uint16
	LoggedBytes  int64
	Line         uint64
}

// Shot is one hit with its due instant, and what the engine measures of it. A shot is used once.
type Shot struct {
	Hit
	DueNS int64 // since the start of the run

	// Of the engine, while the shot is under way.
	StartNS, FirstNS int64 // FirstNS 0: no byte came
	ConnectUS, TLSUS uint32
	Flags            record.Flags
	Retried          bool
	After            func(s *Shot, doneNS int64) // what a closed loop does next; nil: nothing
}

// IsStale reports whether a shot that failed before its first byte found a connection that the server had closed while
// it was kept open, and should be sent again, as browsers do. served is how many shots the connection has had, this one
// included.
func (s *Shot) IsStale(served int) bool {
	return served > 1 && !s.Retried && (s.Method == "GET" || s.Method == "HEAD")
}
