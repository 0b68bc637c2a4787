package exchange

import (
	"context"
	"sync/atomic"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// Recorder takes what the engine measures.
type Recorder interface {
	Start(wall time.Time) error
	Add(r *record.Record)
	Skip(reason string)
	Retried()
}

// Clock counts nanoseconds since the start of the run. It is monotonic: the wall clock may be set meanwhile.
type Clock struct{ T0 time.Time }

// Now returns the nanoseconds since the start of the run.
func (c Clock) Now() int64 { return int64(time.Since(c.T0)) }

// Session is what all lives of one run share.
type Session struct {
	Target     *target.Target
	Headers    *wire.Headers
	Clock      Clock
	Timeout    time.Duration // start → last byte
	Warmup     time.Duration // shots due before it are marked
	Recorder   Recorder
	Validators *Validators
	Members    map[uint32]Member // by the log's client; nil: all are guests
	Health     *Health
	Abort      context.Context // cancelled: what is in flight is given up
	Unhurried  bool            // nothing is due at an instant of its own: those who send need no precedence

	// Set by those who drive lives, once they know.
	Nice atomic.Int64 // of their threads

	queued atomic.Int64 // requests of all lives that wait for a connection
}

// prepare marks a shot of the warm-up, and gives one that repeats a logged 304 the validator of its target.
func (s *Session) prepare(shot *Shot) {
	if shot.DueNS < s.Warmup.Nanoseconds() {
		shot.Flags |= record.Warmup
	}
	if !shot.IfModifiedSince.IsZero() {
		own := *shot.Hit
		s.Validators.recall(&own.Request)
		shot.Hit = &own
	}
	s.join(shot)
}

// deadlineNS returns the instant at which a shot has used up its time.
func (s *Session) deadlineNS(shot *Shot) int64 { return shot.sinceNS() + s.Timeout.Nanoseconds() }

// answered keeps what the head of an answer says for later shots: the validator of a 200, and a member's cookies.
func (s *Session) answered(shot *Shot, answer *wire.Response) {
	shot.hear(answer.Told)
	if answer.Status == 200 {
		s.Validators.learn(&shot.Request, &answer.Version)
	}
}

// record records how a shot ended at the instant now.
func (s *Session) record(shot *Shot, now int64, status int, bytes int64, kind record.ErrorKind) {
	if kind != record.None && s.Abort.Err() != nil {
		kind = record.Aborted
	}
	s.Health.note(now, kind)
	r := record.Record{
		DueNS: shot.DueNS, LagUS: record.SaturatedUS(shot.StartNS - shot.DueNS), LateUS: record.SaturatedUS(shot.lateNS),
		ConnectUS: shot.ConnectUS, TLSUS: shot.TLSUS,
		TotalUS: record.SaturatedUS(now - shot.StartNS),
		Bytes:   bytes, LoggedBytes: shot.LoggedBytes, Line: shot.Line, Client: shot.Client, Route: shot.Route,
		Status: uint16(status), LoggedStatus: shot.LoggedStatus, Error: kind, Flags: shot.Flags,
	}
	if shot.FirstNS != 0 {
		r.TTFBUS = max(1, record.SaturatedUS(shot.FirstNS-shot.StartNS))
	}
	s.Recorder.Add(&r)
}
