// Package exchange is the life of a request, free of I/O: when it is due, whether it waits for a connection, on which
// one it goes out, when it is sent again, when it has taken too long, and how all that becomes a record. Whoever drives
// a life tells it the time and what came of its decisions; a fake clock and a list of calls do for a test.
package exchange

import (
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Hit is one request of a log: what to send, and what the log knows of its first answer.
type Hit struct {
	wire.Request
	Client       uint32
	Route        uint16
	LoggedStatus uint16
	LoggedBytes  int64
	Line         uint64
}

// Key names whose connections a request uses: those of one client to one host by one protocol.
type Key struct {
	Client uint32
	HTTP2  bool
	Host   string
}

// Shot is one sending of a hit: its due instant, and what is measured of it. A shot is used once. Hits may be shared:
// simulated users send the same ones again and again.
type Shot struct {
	*Hit
	Client uint32 // the hit's own, or a simulated user
	Key    Key
	DueNS  int64  // since the start of the run
	Head   []byte // the request as it goes out over plain HTTP/1.x; nil: it is made when it is sent
	Owner  any    // of the plan

	StartNS, FirstNS int64 // of the life and the transport; FirstNS 0: no byte came
	ConnectUS, TLSUS uint32
	Flags            record.Flags

	lateNS      int64 // from due until it was submitted, which is the generator's own
	retried     bool
	member      Member // nil: a guest
	conn        *Conn
	links[Shot] // under way, or waiting
}

// Of makes an empty shot one of a hit, by the client of the log.
func (s *Shot) Of(hit *Hit, dueNS int64) *Shot {
	s.Hit, s.Client, s.DueNS = hit, hit.Client, dueNS
	return s
}

func (s *Shot) chain() *links[Shot] { return &s.links }

// sinceNS returns the instant from which a shot's time counts.
func (s *Shot) sinceNS() int64 {
	if s.StartNS != 0 {
		return s.StartNS
	}
	return s.DueNS
}

// isStale reports whether a shot that failed before its first byte found a connection that the server had closed while
// it was kept open, and should be sent again, as browsers do.
func (s *Shot) isStale() bool {
	return s.Flags&record.Reused != 0 && s.FirstNS == 0 && !s.retried && (s.Method == "GET" || s.Method == "HEAD")
}
