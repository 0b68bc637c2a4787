package traffic

// A line of a log becomes a request; the order of the steps from the log to the engine.

import (
	"context"
	"iter"
	"maps"
	"sync/atomic"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/accesslog/formats"
	"plimsoll/replay/engine"
	"plimsoll/replay/engine/exchange"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/forms"
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

// leadIn is how long before the log's first instant a request may have started that was under way at it.
const leadIn = time.Minute

// SkipNotHTTP is the reason for not sending a request line that was not HTTP.
const SkipNotHTTP = "not_http"

// Counter counts the requests that are not sent, by reason.
type Counter interface {
	Skip(reason string)
	SkipN(reason string, n uint64)
}

// Traffic makes the requests of the logs into what the engine sends. It is used for one run.
type Traffic struct {
	Revalidates atomic.Bool // the log has 304s

	plan    Plan
	logs    *Logs
	counts  Counter
	routes  *route.Namer
	notes   schedule.Notes
	failed  atomic.Pointer[error]    // of reading the logs
	planned atomic.Pointer[[]uint64] // by instance
	pauses  atomic.Pointer[record.Pauses]

	skipped  map[string]uint64 // by reason, since the log was last begun
	texts    internedTexts
	pages    internedTexts            // the referers, whose escapes may be others
	target   []byte                   // room for one
	requests []exchange.LoggedRequest // made many at a time
}

// New plans the requests of the logs. What is not sent is counted; routes numbers kinds of requests.
func New(plan Plan, logs *Logs, counts Counter, routes *route.Namer) *Traffic {
	return &Traffic{plan: plan, logs: logs, counts: counts, routes: routes, skipped: map[string]uint64{}}
}

// entries returns the requests of the logs that may be sent, in the order of the logs.
func (t *Traffic) entries() engine.Schedule {
	return func(yield func(engine.Entry) bool) {
		err := t.logs.source.Each(context.Background(), t.logs.Format, &t.logs.Totals, func(r *accesslog.Request) bool {
			if !t.isWanted(r) {
				return true
			}
			client := t.plan.Spread.of(r)
			request, skip := t.makeRequest(r, client)
			if skip != "" {
				if t.plan.Share.isMine(client) {
					t.counts.Skip(skip)
					t.skipped[skip]++
				}
				return true
			}
			return yield(engine.Entry{AtNS: r.TimeNS, DurationNS: r.DurationNS, Value: request})
		})
		if err != nil {
			t.failed.Store(&err)
		}
	}
}

// isWanted applies --include and --exclude.
func (t *Traffic) isWanted(r *accesslog.Request) bool {
	included := len(t.plan.Include) == 0
	for _, re := range t.plan.Include {
		included = included || re.Match(r.Target)
	}
	for _, re := range t.plan.Exclude {
		if re.Match(r.Target) {
			return false
		}
	}
	return included
}

// makeRequest makes a request of a log line, or returns why it cannot be sent.
func (t *Traffic) makeRequest(r *accesslog.Request, client uint32) (request *exchange.LoggedRequest, skip string) {
	style := t.logs.Format.Escape()
	t.target = accesslog.Unescape(t.target[:0], r.Target, t.logs.Format.TargetEscape())
	method := methodText(r.Method)
	switch {
	case method == "" && t.logs.hasMethod:
		return nil, SkipNotHTTP
	case method == "":
		method = "GET" // a format without methods: what it lists are pages that were fetched
	}
	if !t.plan.Methods[method] {
		return nil, wire.SkipMethod
	}
	if len(t.requests) == 0 {
		t.requests = make([]exchange.LoggedRequest, 64)
	}
	h := &t.requests[0]
	t.requests = t.requests[1:]
	*h = exchange.LoggedRequest{
		Request: wire.Request{
			Method: method, Target: string(t.target), Host: string(t.hostOf(r)),
			UserAgent: t.texts.of(r.UserAgent, style), Referer: t.pages.of(r.Referer, t.logs.Format.RefererEscape()),
			Proto: wire.ParseProtocol(r.Protocol),
		},
		Client: client, Route: t.routes.Route(r.Target), LoggedStatus: r.Status, LoggedBytes: r.Bytes,
		Line: record.PackLine(r.File, r.Line),
	}
	if t.plan.NameClients {
		h.ClientIP = wire.ClientAddress(r.Host)
	}
	if !t.plan.Unconditional {
		switch {
		case r.Status == 304:
			h.IfModifiedSince = time.Unix(0, r.TimeNS)
			t.Revalidates.Store(true)
		case r.Status == 206 && r.Bytes > 0:
			h.RangeBytes = r.Bytes
		}
	}
	if skip = t.attachBody(h, r); skip != "" {
		return h, skip
	}
	if skip = h.Unsafe(); skip == "" && !wire.IsAuthority(h.Host) {
		skip = wire.SkipHeader
	}
	return h, skip
}

// hostOf returns the host of the log that a request is sent with; none: the target's. That of an absolute URL is another
// site's where the log is a proxy's, so it has to be asked for.
func (t *Traffic) hostOf(r *accesslog.Request) []byte {
	switch {
	case t.plan.Host == HostTarget:
		return nil
	case t.plan.Host == HostLog && len(r.VHost) == 0:
		return r.URLHost
	}
	return r.VHost
}

// attachBody gives a request the body that was recorded, without its secrets, or returns why that cannot be sent. HTTP/1.1
// carries it: frames of HTTP/2 would have to wait for the server's windows.
func (t *Traffic) attachBody(h *exchange.LoggedRequest, r *accesslog.Request) (skip string) {
	if !carries(h.Method) || len(r.Body) == 0 && r.BodyBytes <= 0 {
		return ""
	}
	if r.BodyBytes >= 0 && r.BodyBytes != int64(len(r.Body)) {
		return forms.SkipPartial
	}
	body, skip := t.plan.Forms.Clean(string(r.BodyType), r.Body)
	h.Body, h.BodyType = body.Text, body.Type
	if h.Proto == wire.HTTP2 {
		h.Proto = wire.HTTP11
	}
	return skip
}

// carries reports whether requests of a method have bodies.
func carries(method string) bool { return method != "GET" && method != "HEAD" }

// methodText returns a method as a text; those of nearly all requests take no memory.
func methodText(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "HEAD":
		return "HEAD"
	}
	return string(b)
}

// ordered returns the requests in the order in which they began, each at its own instant.
func (t *Traffic) ordered() engine.Schedule {
	seq := schedule.Sort(t.entries(), sortWindow)
	if t.plan.Speed == 0 {
		return t.between(seq) // as fast as it goes: only the order counts
	}
	if tick := t.logs.Format.Resolution(); tick >= time.Second && !t.plan.Burst {
		seq = schedule.Spread(seq, tick.Nanoseconds(), uint64(t.plan.Seed), &t.notes)
	}
	if t.logs.Finished {
		first, _ := t.logs.Totals.WholeSpan()
		seq = schedule.Sort(schedule.Starts(seq, first-leadIn.Nanoseconds()), sortWindow)
	}
	return t.between(seq)
}

// between applies --from and --to.
func (t *Traffic) between(seq engine.Schedule) engine.Schedule {
	from, to := t.fromTo()
	return schedule.Between(seq, from, to)
}

// fromTo returns the instants of --from and --to in Unix nanoseconds.
func (t *Traffic) fromTo() (from, to int64) {
	from, to = int64(-1<<63), int64(1<<63-1)
	if !t.plan.From.IsZero() {
		from = t.plan.From.UnixNano()
	}
	if !t.plan.To.IsZero() {
		to = t.plan.To.UnixNano()
	}
	return from, to
}

// Paced returns the requests with their due instants.
func (t *Traffic) Paced() engine.Schedule {
	pacing := schedule.Pacing{
		Speed: t.plan.Speed, Rate: t.plan.Rate, PauseNS: t.plan.Pause.Nanoseconds(), LimitNS: t.plan.Until.Nanoseconds(),
		Loops: t.plan.Loops,
	}
	return t.applyShare(func(yield func(engine.Entry) bool) {
		defer func() {
			if t.notes.Pauses > 0 {
				t.pauses.Store(&record.Pauses{Shortened: t.notes.Pauses, CutS: float64(t.notes.CutNS) / 1e9})
			}
		}()
		schedule.Pace(t.ordered, pacing, &t.notes)(yield)
	})
}

// Unpaced returns the requests in the order of the log, for the closed loop that gives them due instants itself.
func (t *Traffic) Unpaced() engine.Schedule {
	return t.applyShare(func(yield func(engine.Entry) bool) {
		source := t.between(t.entries())
		for loop := 0; t.plan.Loops == 0 || loop < t.plan.Loops; loop++ {
			pass := &firstPass{}
			t.skipped = map[string]uint64{}
			for e := range source {
				pass.add(e.Value)
				if !yield(e) {
					return
				}
			}
			if pass.count == 0 {
				return
			}
			if loop == 0 && pass.count == uint64(len(pass.requests)) { // all of them were kept
				source = pass.entries(t.counts, t.skipped)
			}
		}
	})
}

// applyShare applies the limit, which is one of all instances together, and then leaves out the other instances' requests.
// It counts those of all instances, so that the ones of an instance that dies are known.
func (t *Traffic) applyShare(seq engine.Schedule) engine.Schedule {
	if t.plan.Limit > 0 {
		seq = schedule.Limit(seq, t.plan.Limit)
	}
	return func(yield func(engine.Entry) bool) {
		planned := make([]uint64, t.plan.Share.Instances())
		for e := range seq {
			instance := t.plan.Share.Of(e.Value.Client)
			planned[instance]++
			if instance == t.plan.Share.Index() && !yield(e) {
				return
			}
		}
		t.planned.Store(&planned)
	}
}

// Planned returns how many requests the schedule has for each instance; nil until the schedule has ended.
func (t *Traffic) Planned() []uint64 {
	if planned := t.planned.Load(); planned != nil {
		return *planned
	}
	return nil
}

// Visits returns what the clients of the logs did, one after the other, at the planned speed.
func (t *Traffic) Visits() iter.Seq[engine.Visit] {
	client := func(h *exchange.LoggedRequest) uint64 { return uint64(h.Client) }
	seq := t.applyShare(t.ordered())
	return func(yield func(engine.Visit) bool) {
		for visit := range schedule.Visits(seq, client, visitPause.Nanoseconds(), visitWindow) {
			begin := visit[0].AtNS
			for i := range visit {
				visit[i].AtNS = int64(float64(visit[i].AtNS-begin) / t.plan.Speed)
			}
			if !yield(visit) {
				return
			}
		}
	}
}

// Describe adds to run.json what is known only after the schedule has ended.
func (t *Traffic) Describe(run *record.Run) {
	if first := t.notes.FirstNS.Load(); first != 0 {
		run.LogStart = record.Instant{Time: time.Unix(0, first)}
	}
	run.LogPauses = t.pauses.Load()
}

// Err returns what went wrong when the logs were read; nil if nothing did.
func (t *Traffic) Err() error {
	if err := t.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// maxKept bounds how many requests are kept from one loop to the next, so that a short log that is replayed many
// times is read once.
const maxKept = 1 << 16

// firstPass keeps the requests of the first loop through a log, ready to be sent again.
type firstPass struct {
	requests []*exchange.LoggedRequest
	count    uint64
}

func (p *firstPass) add(request *exchange.LoggedRequest) {
	p.count++
	if len(p.requests) < maxKept {
		p.requests = append(p.requests, request)
	}
}

// entries returns the requests once more, and counts the log's other lines once more.
func (p *firstPass) entries(counts Counter, skipped map[string]uint64) engine.Schedule {
	skipped = maps.Clone(skipped)
	return func(yield func(engine.Entry) bool) {
		for _, request := range p.requests {
			if !yield(engine.Entry{Value: request}) {
				return
			}
		}
		for reason, n := range skipped {
			counts.SkipN(reason, n)
		}
	}
}

// mostTexts bounds how many texts are kept; past it all are forgotten.
const mostTexts = 1 << 14

// internedTexts keeps what logs repeat from line to line: hosts, browsers, pages that link. Each is unescaped and
// stored once.
type internedTexts struct{ known map[string]string }

// of returns the text that a log has in its own escapes; "" for the dash that stands for nothing.
func (t *internedTexts) of(raw []byte, style formats.Escape) string {
	if text, ok := t.known[string(raw)]; ok {
		return text
	}
	text := string(accesslog.Unescape(nil, raw, style))
	if text == "-" {
		text = ""
	}
	if t.known == nil || len(t.known) >= mostTexts {
		t.known = map[string]string{}
	}
	t.known[string(raw)] = text
	return text
}
