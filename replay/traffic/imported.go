package traffic

// What a log with durations says was served, as records.

import (
	"bytes"
	"context"
	"math"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/record"
	"plimsoll/replay/schedule"
)

// Why a line of a log is not a request with a response time.
const (
	SkipUntimed = "no_duration"
	// SkipTunnel is of a connection that became another one (101, CONNECT): its duration is how long that lived.
	SkipTunnel = "tunnel"
)

// ClosedByClient is the status with which nginx logs that the client went away before it had its answer.
const ClosedByClient = 499

// ImportedLog makes records of what a log with durations says was served: the arrival is what was due, the logged
// duration is the response time. It is used once.
type ImportedLog struct {
	FirstNS  int64         // the Unix instant that DueNS counts from; 0 before the first record
	LastNS   int64         // when the last of them was done
	Records  uint64        // so far
	GivenUp  uint64        // of them, those with ClosedByClient: they took at least as long
	Finest   time.Duration // the largest of 1 s, 1 ms, 1 µs and 1 ns of which all durations are multiples; 0 without any
	finestAt int

	traffic *Traffic
	sure    bool // FirstNS is
}

// served is a request on its way: 32 bytes, since many wait to be sorted.
type served struct {
	bytes         int64
	line          uint64
	client        uint32
	route, status uint16
	http2         bool
}

// units are those in which servers log durations.
var units = [...]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}

// Imported reads the logs as what was served. The plan's From, To, Include, Exclude, Burst and Seed count.
func (t *Traffic) Imported() *ImportedLog { return &ImportedLog{traffic: t} }

// Each calls use with the records in the order in which they were done, as exactly as a bounded window sorts them, until
// ctx ends. Requests that the log does not know the duration of are counted as skipped.
func (s *ImportedLog) Each(ctx context.Context, use func(r *record.Record)) error {
	t := s.traffic
	seq := schedule.Sort(s.entries(ctx), sortWindow)
	if tick := t.logs.Format.Resolution(); tick >= time.Second && !t.plan.Burst {
		seq = schedule.Spread(seq, tick.Nanoseconds(), uint64(t.plan.Seed), &t.notes)
	}
	if !t.logs.Finished {
		seq = schedule.Sort(ends(seq), sortWindow)
	}
	earliest := int64(math.MinInt64)
	if t.logs.Finished {
		first, _ := t.logs.Totals.WholeSpan()
		earliest = first - leadIn.Nanoseconds()
	}
	var early []schedule.Entry[served] // until it is known which began first
	for e := range s.between(seq, earliest) {
		switch {
		case s.sure:
			s.emit(e, earliest, use)
		case len(early) < sortWindow:
			early = append(early, e)
		default:
			s.begin(early, earliest, use)
			early = nil
			s.emit(e, earliest, use)
		}
	}
	s.begin(early, earliest, use)
	if t.Err() == nil {
		return ctx.Err()
	}
	return t.Err()
}

// entries returns what was served in the order of the logs, at the logged instants.
func (s *ImportedLog) entries(ctx context.Context) schedule.Seq[served] {
	t := s.traffic
	return func(yield func(schedule.Entry[served]) bool) {
		err := t.logs.source.Each(ctx, t.logs.Format, &t.logs.Totals, func(r *accesslog.Request) bool {
			if !t.isWanted(r) {
				return true
			}
			if why := t.unserved(r); why != "" {
				t.counts.Skip(why)
				return true
			}
			for r.DurationNS%int64(units[s.finestAt]) != 0 {
				s.finestAt++
			}
			s.Finest = units[s.finestAt]
			return yield(schedule.Entry[served]{AtNS: r.TimeNS, DurationNS: r.DurationNS, Value: served{
				bytes: max(0, r.Bytes), line: record.PackLine(r.File, r.Line), client: numberClient(r.Host, r.UserAgent),
				route: t.routes.Route(r.Target), status: r.Status, http2: string(r.Protocol) == "HTTP/2",
			}})
		})
		if err != nil {
			t.failed.Store(&err)
		}
	}
}

// unserved returns why a line is left out; "" where it is not.
func (t *Traffic) unserved(r *accesslog.Request) string {
	switch {
	case r.Method == nil && t.logs.hasMethod:
		return SkipNotHTTP
	case r.Status == 101, bytes.EqualFold(r.Method, []byte("CONNECT")):
		return SkipTunnel
	case r.DurationNS < 0:
		return SkipUntimed
	}
	return ""
}

// ends turns instants of start into those of the end.
func ends(in schedule.Seq[served]) schedule.Seq[served] {
	return func(yield func(schedule.Entry[served]) bool) {
		for e := range in {
			e.AtNS += min(e.DurationNS, math.MaxInt64-e.AtNS)
			if !yield(e) {
				return
			}
		}
	}
}

// started returns when a request that ended at AtNS began; none before the log's own time.
func started(e *schedule.Entry[served], earliestNS int64) int64 {
	return max(e.AtNS-e.DurationNS, earliestNS)
}

// between applies the plan's From and To to the instants of start.
func (s *ImportedLog) between(seq schedule.Seq[served], earliestNS int64) schedule.Seq[served] {
	from, to := s.traffic.fromTo()
	return func(yield func(schedule.Entry[served]) bool) {
		for e := range seq {
			if at := started(&e, earliestNS); at >= from && at < to && !yield(e) {
				return
			}
		}
	}
}

// begin finds out which of the earliest requests began first, and emits them.
func (s *ImportedLog) begin(early []schedule.Entry[served], earliestNS int64, use func(r *record.Record)) {
	if s.sure || len(early) == 0 {
		return
	}
	s.sure, s.FirstNS = true, math.MaxInt64
	for i := range early {
		s.FirstNS = min(s.FirstNS, started(&early[i], earliestNS))
	}
	s.FirstNS -= s.FirstNS % 1000 // run.json has microseconds
	for i := range early {
		s.emit(early[i], earliestNS, use)
	}
}

func (s *ImportedLog) emit(e schedule.Entry[served], earliestNS int64, use func(r *record.Record)) {
	v := e.Value
	r := record.Record{
		DueNS: max(0, started(&e, earliestNS)-s.FirstNS), TotalUS: record.SaturatedUS(e.DurationNS),
		Bytes: min(v.bytes, 1<<40), LoggedBytes: -1, Line: v.line, Client: v.client, Route: v.route, Status: v.status,
	}
	if v.http2 {
		r.Flags |= record.HTTP2
	}
	if v.status == ClosedByClient {
		s.GivenUp++
	}
	s.Records++
	s.LastNS = max(s.LastNS, e.AtNS)
	use(&r)
}
