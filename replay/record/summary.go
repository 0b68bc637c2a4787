// summary.json: counts and exact statistics of all records, and whether the generator was the limit.

package record

import (
	"fmt"
	"math"
	"time"

	"plimsoll/replay/served"
)

// Summary is summary.json: counts and exact statistics of the whole run.
type Summary struct {
	Format    int        `json:"format"`
	Records   string     `json:"records_sha256"` // of all whole records
	Requests  Requests   `json:"requests"`
	DurationS float64    `json:"duration_s"` // start of the run → the last request done
	Response  Statistics `json:"response_ms"`
	Service   Statistics `json:"service_ms"`
	Lag       Statistics `json:"lag_ms"`  // of requests that were not queued
	Late      Statistics `json:"late_ms"` // of all, until each was submitted
	TTFB      Statistics `json:"ttfb_ms"`
	Grinder   Grinder    `json:"grinder"`

	// Where requests waited for connections of their own clients: how long, and the response times without that.
	ClientWait *Statistics `json:"client_wait_ms,omitempty"`
	Unqueued   *Statistics `json:"unqueued_ms,omitempty"`

	// Where the generator was late: the response times without that, and the share of the requests that it sent in
	// another 100 ms than that in which they were due.
	Prompt *Statistics `json:"prompt_ms,omitempty"`
	Moved  float64     `json:"moved,omitempty"`

	Members *Members  `json:"members,omitempty"` // nil: all clients are guests
	Limits  []Verdict `json:"limits,omitempty"`  // nil: none was given

	// Served counts the answers by what gave them, by names of served.Names; nil where no answer says it.
	Served map[string]uint64 `json:"served,omitempty"`

	// NotAsLogged says how many answers are not those of the log, and the likely cause; "" where they are few.
	NotAsLogged string `json:"not_as_logged,omitempty"`

	// Routes are the rows of the table; a reader of the directory takes them from the records.
	Routes []RouteRow `json:"-"`

	// How the run ended, as it stands in run.json.
	Status                 Status `json:"-"`
	Reason                 string `json:"-"`
	GeneratorLimited       bool   `json:"-"`
	GeneratorLimitedReason string `json:"-"`
}

// Requests counts what became of the requests in the log.
type Requests struct {
	Total          *uint64           `json:"total"` // sent + skipped + unsent; nil: unknown
	Sent           uint64            `json:"sent"`  // warm-up included
	OK             uint64            `json:"ok"`
	Errors         uint64            `json:"errors"`
	Failures       uint64            `json:"failures"` // errors and wrong answers
	StatusMismatch uint64            `json:"status_mismatch"`
	BytesMismatch  uint64            `json:"bytes_mismatch"`
	Queued         uint64            `json:"queued"`
	ClientQueued   uint64            `json:"client_queued"`   // of these, for a connection of their own client
	ClientTimeouts uint64            `json:"client_timeouts"` // of these, until their time was up
	Retried        uint64            `json:"retried"`
	Warmup         uint64            `json:"warmup"`
	Skipped        map[string]uint64 `json:"skipped"`
	Unsent         *uint64           `json:"unsent"` // nil: more than could be counted in time, or without end
}

// Members counts what clients sent that were logged in, without the warm-up.
type Members struct {
	Clients     int    `json:"clients"`  // of the log
	Accounts    int    `json:"accounts"` // that they use
	Requests    uint64 `json:"requests"` // sent with their cookies
	SentToLogin uint64 `json:"sent_to_login"`
}

// unrecorded are the counts of what never became a record.
type unrecorded struct {
	skipped         map[string]uint64
	unsent, retried uint64
	uncounted       bool // there were more unsent
	members         *Members
}

// summarize returns the summary of a tally; names are those of the routes.
func summarize(t *tally, o unrecorded, names []string) Summary {
	s := Summary{
		Format: Format,
		Requests: Requests{
			Sent: t.sent, OK: t.ok, Errors: t.errors, Failures: t.response.failed.n, StatusMismatch: t.statusMismatch, BytesMismatch: t.bytesMismatch,
			Queued: t.queued, ClientQueued: t.clientQueued, ClientTimeouts: t.clientTimeouts, Retried: o.retried, Warmup: t.warmup, Skipped: map[string]uint64{},
		},
		DurationS: float64(t.endNS) / 1e9,
		Response:  t.response.statistics(),
		Service:   t.service.statistics(),
		Lag:       t.lag.statistics(),
		Late:      t.late.statistics(),
		TTFB:      t.ttfb.statistics(),
		Moved:     t.moved(),

		NotAsLogged: t.answers.describe(),
	}
	if t.unqueued != nil {
		wait, unqueued := t.clientWait.statistics(), t.unqueued.statistics()
		s.ClientWait, s.Unqueued = &wait, &unqueued
	}
	if t.prompt != nil {
		prompt := t.prompt.statistics()
		s.Prompt = &prompt
	}
	if t.served[served.Unknown] < t.ok {
		s.Served = map[string]uint64{}
		for by, n := range t.served {
			if n > 0 {
				s.Served[served.Names[by]] = n
			}
		}
	}
	if o.members != nil {
		s.Members = &Members{o.members.Clients, o.members.Accounts, t.members, t.sentToLogin}
	}
	total := t.sent + o.unsent
	for reason, n := range o.skipped {
		s.Requests.Skipped[reason] = n
		total += n
	}
	if !o.uncounted {
		s.Requests.Total, s.Requests.Unsent = &total, &o.unsent
	}
	response := s.Response.P999
	if least, censored := s.Response.Censored["p99.9"]; censored {
		response = least
	}
	s.GeneratorLimited, s.GeneratorLimitedReason = limited(s.Late.P999, response)

	var all aggregate
	tt := hoursMinutes(s.DurationS)
	for i := range t.routes {
		a := &t.routes[i]
		all.merge(a)
		if a.test.n+a.errors > 0 {
			s.Routes = append(s.Routes, RouteRow{Number: i + 1, Name: routeName(names, i), Grinder: a.grinder(t.elapsedS(), tt)})
		}
	}
	s.Grinder = all.grinder(t.elapsedS(), tt)
	return s
}

// A generator is limited when its own lag is too long to be ignored, both in itself and beside what it measured.
const (
	limitLagMS    = 1.0
	limitFraction = 0.05
)

// sentLate begins the reason where lateness is all: limits know by it, as do verdicts (SENT_LATE in
// plimsoll/analysis/evidence/generator.py).
const sentLate = "the generator sent late"

// limited judges the p99.9 of the lateness of all requests, also of those that then waited for a connection, against the
// p99.9 of the response time. Where there are fewer than 1,000 of either, nothing can be said and nothing is.
func limited(lateMS, responseMS *float64) (bool, string) {
	if lateMS == nil || responseMS == nil || *lateMS <= limitLagMS || *lateMS <= limitFraction**responseMS {
		return false, ""
	}
	return true, fmt.Sprintf(sentLate+": by %s at p99.9, where responses take %s; lower --speed or --rate, or give the generator cores of its own",
		roundedTime(*lateMS), roundedTime(*responseMS))
}

// roundedTime writes milliseconds with three significant figures, in seconds from 1,000 ms on.
func roundedTime(ms float64) string {
	if ms < 999.5 {
		return fmt.Sprintf("%.3g ms", ms)
	}
	return fmt.Sprintf("%.*f s", max(0, 2-int(math.Log10(ms/1000))), ms/1000)
}

// tally folds records into everything that the summary says about them. It is pure: no clock, no files.
type tally struct {
	sent, warmup, ok, errors      uint64
	statusMismatch, bytesMismatch uint64
	answers                       answers
	served                        [len(served.Names)]uint64 // of the whole ones
	queued                        uint64
	clientQueued, clientTimeouts  uint64
	members, sentToLogin          uint64
	firstStartNS, lastDoneNS      int64 // of the measured records
	endNS                         int64 // of all records
	response, service             times
	clientWait                    histogram       // due → start of those that waited for their own client's connections
	unqueued                      *times          // response times without that; nil: as response
	prompt                        *times          // response times without the generator's lateness; nil: as response
	slots                         map[int64]int64 // of 100 ms: requests sent less requests due, where they differ
	ttfb, lag, late               histogram
	routes                        []aggregate
	silence                       silence
	timeout                       time.Duration // of a request; 0: unknown
	limits                        []counted
}

func (t *tally) add(r *Record) {
	t.sent++
	t.endNS = max(t.endNS, r.DoneNS())
	t.silence.add(r)
	if r.Flags&Warmup != 0 {
		t.warmup++
		return
	}
	start := r.DueNS + int64(r.LagUS)*1000
	if t.response.number() == 0 || start < t.firstStartNS {
		t.firstStartNS = start
	}
	t.lastDoneNS = max(t.lastDoneNS, r.DoneNS())
	for i := range t.limits {
		if t.limits[i].breaks(r) {
			t.limits[i].broken++
		}
	}
	unqueuedUS := r.ResponseUS()
	if r.Flags&ClientQueued != 0 {
		t.clientQueued++
		if r.wasNeverSent() {
			t.clientTimeouts++
		}
		t.clientWait.add(uint64(r.LagUS))
		unqueuedUS = uint64(r.TotalUS)
		if t.unqueued == nil {
			t.unqueued = t.response.clone()
		}
	}
	timeoutUS := uint64(t.timeout.Microseconds())
	t.addLate(r, timeoutUS)
	t.response.addOf(r, r.ResponseUS(), timeoutUS)
	t.service.addOf(r, uint64(r.TotalUS), timeoutUS)
	if t.unqueued != nil && !r.wasNeverSent() {
		t.unqueued.addOf(r, unqueuedUS, timeoutUS)
	}
	if r.Flags&Queued != 0 {
		t.queued++
	} else {
		t.lag.add(uint64(r.LagUS))
	}
	t.late.add(uint64(r.GeneratorLateUS()))
	if r.TTFBUS > 0 && !r.Failed() {
		t.ttfb.add(uint64(r.TTFBUS))
	}
	if r.Flags&Member != 0 {
		t.members++
	}
	if r.Flags&SentToLogin != 0 {
		t.sentToLogin++
	}
	t.countMismatches(r)
	t.answers.add(r)
	t.route(r.Route).add(r)
}

const slotNS = 100_000_000

// addLate counts what the generator's own lateness did to the response time, and to the shape of the load. It comes before
// response has the request.
func (t *tally) addLate(r *Record, timeoutUS uint64) {
	late := r.GeneratorLateUS()
	mayBe := min(late, r.LagUS) // the whole lag where it is not known
	if t.prompt == nil && mayBe > limitLagMS*1000 {
		t.prompt = t.response.clone()
	}
	if t.prompt != nil {
		t.prompt.addOf(r, r.ResponseUS()-uint64(mayBe), timeoutUS)
	}
	if due, sent := r.DueNS/slotNS, (r.DueNS+int64(late)*1000)/slotNS; due != sent && late != UnknownLateUS {
		if t.slots == nil {
			t.slots = map[int64]int64{}
		}
		t.slots[due]--
		t.slots[sent]++
	}
}

// moved returns the share of the requests that were sent in another 100 ms than that in which they were due, as
// plimsoll/analysis/evidence/traits.py has it.
func (t *tally) moved() float64 {
	var moved int64
	for _, more := range t.slots {
		moved += max(more, 0)
	}
	return float64(moved) / float64(max(t.response.number(), 1))
}

// countMismatches compares the response with the log, where the log knows; sizes only where the statuses agree.
func (t *tally) countMismatches(r *Record) {
	if r.Error != None {
		t.errors++
		return
	}
	t.ok++
	if int(r.Served) < len(t.served) {
		t.served[r.Served]++
	} else {
		t.served[served.Unknown]++
	}
	switch {
	case r.Flags&SentToLogin != 0: // whatever the log has
		t.statusMismatch++
	case r.LoggedStatus == 0:
	case r.Status != r.LoggedStatus:
		t.statusMismatch++
	case r.LoggedBytes >= 0 && r.Bytes != r.LoggedBytes:
		t.bytesMismatch++
	}
}

func (t *tally) route(i uint16) *aggregate {
	if int(i) >= len(t.routes) {
		t.routes = append(t.routes, make([]aggregate, int(i)+1-len(t.routes))...)
	}
	return &t.routes[i]
}

// elapsedS returns first start → last done of the measured records, in seconds.
func (t *tally) elapsedS() float64 { return float64(t.lastDoneNS-t.firstStartNS) / 1e9 }
