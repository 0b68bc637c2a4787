package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"sync/atomic"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/engine"
	"plimsoll/replay/record"
	"plimsoll/replay/route"
	"plimsoll/replay/schedule"
)

// Bounds of what is held of a log at a time.
const (
	sortWindow  = 1 << 16 // requests put in order
	visitWindow = 1 << 17 // requests grouped into visits
	visitPause  = 30 * time.Minute
)

// skipNotHTTP is the reason for not sending a request line that was no HTTP.
const skipNotHTTP = "not_http"

// traffic makes the requests of the logs into what the engine sends.
type traffic struct {
	cmd    *runCmd
	asked  *asked
	logs   *logs
	dir    *record.Dir
	routes *route.Namer
	notes  schedule.Notes
	failed atomic.Pointer[error] // of reading the logs

	revalidates atomic.Bool       // the log has 304s
	skipped     map[string]uint64 // by reason, since the log was last begun
}

// entries are the requests of the logs that may be sent, in the order of the logs.
func (t *traffic) entries() schedule.Seq[*engine.Shot] {
	return func(yield func(schedule.Entry[*engine.Shot]) bool) {
		err := t.logs.each(context.Background(), func(r *accesslog.Request) bool {
			if !t.wanted(r) {
				return true
			}
			shot, skip := t.shot(r)
			if skip != "" {
				t.dir.Skip(skip)
				t.skipped[skip]++
				return true
			}
			return yield(schedule.Entry[*engine.Shot]{AtNS: r.TimeNS, DurationNS: r.DurationNS, Value: shot})
		})
		if err != nil {
			t.failed.Store(&err)
		}
	}
}

// wanted applies --include and --exclude.
func (t *traffic) wanted(r *accesslog.Request) bool {
	included := len(t.asked.include) == 0
	for _, re := range t.asked.include {
		included = included || re.Match(r.Target)
	}
	for _, re := range t.asked.exclude {
		if re.Match(r.Target) {
			return false
		}
	}
	return included
}

// shot makes a request of a log line, or says why it cannot be sent.
func (t *traffic) shot(r *accesslog.Request) (shot *engine.Shot, skip string) {
	style := t.logs.format.Escape()
	unescaped := func(b []byte) string { return string(accesslog.Unescape(nil, b, style)) }
	target := string(accesslog.Unescape(nil, r.Target, t.logs.format.TargetEscape()))
	method := string(r.Method)
	switch {
	case method == "" && t.logs.hasMethod:
		return nil, skipNotHTTP
	case method == "":
		method = "GET" // a format without methods: what it lists are pages that were fetched
	}
	if !t.asked.methods[method] {
		return nil, engine.SkipMethod
	}
	s := &engine.Shot{Request: engine.Request{
		Method: method, Target: target, Host: string(r.VHost),
		UserAgent: absent(unescaped(r.UserAgent)), Referer: absent(unescaped(r.Referer)),
		Proto: engine.ParseProtocol(r.Protocol), Client: clientOf(r.Host, r.UserAgent),
		Route: t.routes.Route(r.Target), LoggedStatus: r.Status, LoggedBytes: r.Bytes,
		Line: record.PackLine(r.File, r.Line),
	}}
	if !t.cmd.Unconditional {
		switch {
		case r.Status == 304:
			s.IfModifiedSince = time.Unix(0, r.TimeNS)
			t.revalidates.Store(true)
		case r.Status == 206 && r.Bytes > 0:
			s.RangeBytes = r.Bytes
		}
	}
	return s, s.Unsafe()
}

// absent turns the dash of logs into nothing.
func absent(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// clientOf numbers a client by a hash of its address and user agent: the same in every run and on every machine.
func clientOf(host, agent []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(host)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(agent)
	return h.Sum32()
}

// ordered are the requests in the order in which they began, each at its own instant.
func (t *traffic) ordered() schedule.Seq[*engine.Shot] {
	seq := schedule.Sort(t.entries(), sortWindow)
	if t.asked.speed == 0 {
		return t.between(seq) // as fast as it goes: only the order counts
	}
	if tick := t.logs.format.Resolution(); tick >= time.Second && !t.cmd.Burst {
		seq = schedule.Spread(seq, tick.Nanoseconds(), uint64(t.cmd.Seed), &t.notes)
	}
	if t.logs.finished {
		seq = schedule.Sort(schedule.Starts(seq), sortWindow)
	}
	return t.between(seq)
}

// between applies --from and --to.
func (t *traffic) between(seq schedule.Seq[*engine.Shot]) schedule.Seq[*engine.Shot] {
	from, to := int64(-1<<63), int64(1<<63-1)
	if !t.asked.from.IsZero() {
		from = t.asked.from.UnixNano()
	}
	if !t.asked.to.IsZero() {
		to = t.asked.to.UnixNano()
	}
	return schedule.Between(seq, from, to)
}

// paced are the requests with their due instants.
func (t *traffic) paced() iter.Seq[*engine.Shot] {
	plan := schedule.Plan{Speed: t.asked.speed, Rate: t.cmd.Rate, LimitNS: t.cmd.Duration.Nanoseconds(), Loops: t.cmd.Loops}
	return t.limited(schedule.Pace(t.ordered, plan, &t.notes), func(s *engine.Shot, atNS int64) { s.DueNS = atNS })
}

// unpaced are the requests in the order of the log, for the closed loop that gives them due instants itself.
func (t *traffic) unpaced() iter.Seq[*engine.Shot] {
	loops := func(yield func(schedule.Entry[*engine.Shot]) bool) {
		source := t.between(t.entries())
		for loop := 0; t.cmd.Loops == 0 || loop < t.cmd.Loops; loop++ {
			kept := &kept{}
			t.skipped = map[string]uint64{}
			for e := range source {
				kept.add(e.Value)
				if !yield(e) {
					return
				}
			}
			if kept.count == 0 {
				return
			}
			if kept.whole() && loop == 0 {
				source = kept.entries(t.dir, t.skipped)
			}
		}
	}
	return t.limited(loops, func(*engine.Shot, int64) {})
}

// limited applies --limit and hands out the shots.
func (t *traffic) limited(seq schedule.Seq[*engine.Shot], set func(s *engine.Shot, atNS int64)) iter.Seq[*engine.Shot] {
	if t.cmd.Limit > 0 {
		seq = schedule.Limit(seq, t.cmd.Limit)
	}
	return func(yield func(*engine.Shot) bool) {
		for e := range seq {
			set(e.Value, e.AtNS)
			if !yield(e.Value) {
				return
			}
		}
	}
}

// visits are what the clients of the logs did, one after the other, at the speed asked for.
func (t *traffic) visits() iter.Seq[engine.Visit] {
	client := func(s *engine.Shot) uint64 { return uint64(s.Client) }
	seq := t.ordered()
	if t.cmd.Limit > 0 {
		seq = schedule.Limit(seq, t.cmd.Limit)
	}
	return func(yield func(engine.Visit) bool) {
		for visit := range schedule.Visits(seq, client, visitPause.Nanoseconds(), visitWindow) {
			steps := make(engine.Visit, len(visit))
			for i, e := range visit {
				steps[i] = engine.Step{AtNS: int64(float64(e.AtNS-visit[0].AtNS) / t.asked.speed), Request: e.Value.Request}
			}
			if !yield(steps) {
				return
			}
		}
	}
}

// expected says how long the run will take and how many requests it will send, as far as the counts of the logs tell. What is not
// known is 0.
func (t *traffic) expected() (whole time.Duration, total uint64) {
	first, last, valid := t.logs.span()
	total = valid * uint64(t.cmd.Loops)
	if t.cmd.Limit > 0 && (total == 0 || t.cmd.Limit < total) {
		total = t.cmd.Limit
	}
	switch {
	case t.cmd.Users > 0 || t.asked.speed == 0:
		return t.cmd.Duration, total
	case t.cmd.Rate > 0:
		whole = time.Duration(float64(total) / t.cmd.Rate * 1e9)
	default:
		if t.asked.from.After(first) {
			first = t.asked.from
		}
		if !t.asked.to.IsZero() && t.asked.to.Before(last) {
			last = t.asked.to
		}
		whole = time.Duration(float64(last.Sub(first)) / t.asked.speed * float64(t.cmd.Loops))
	}
	if t.cmd.Duration > 0 && (whole == 0 || t.cmd.Duration < whole) {
		whole = t.cmd.Duration
	}
	return max(0, whole), total
}

// describe adds to run.json what is known only after the schedule was gone through.
func (t *traffic) describe(run *record.Run) {
	if t.notes.FirstNS != 0 {
		run.LogStart = record.Instant{Time: time.Unix(0, t.notes.FirstNS)}
	}
}

// status says how the run ended.
func (t *traffic) status(o engine.Outcome) (record.Status, string) {
	if err := t.failed.Load(); err != nil {
		return record.Failed, (*err).Error()
	}
	switch {
	case o.Cause == errInterrupted:
		return record.Interrupted, fmt.Sprintf("interrupted, with %d requests unsent", o.Unsent)
	case o.Cause != nil:
		return record.Failed, o.Cause.Error()
	case t.dir.Live().Sent == 0:
		return record.Failed, "the log holds no request to send: see skipped in summary.json, and --methods, --include, --from"
	}
	return record.Complete, ""
}
