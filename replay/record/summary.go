package record

import (
	"fmt"
	"math"
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

	Members *Members  `json:"members,omitempty"` // nil: all clients are guests
	Limits  []Verdict `json:"limits,omitempty"`  // nil: none was given

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

// Grinder is one row of The Grinder's table. Times are service times of successful requests.
type Grinder struct {
	Tests  uint64   `json:"tests"` // successful ones, as in The Grinder
	Errors uint64   `json:"errors"`
	MTT    *float64 `json:"MTT_ms"`
	TTSD   *float64 `json:"TTSD_ms"`
	TPS    *float64 `json:"TPS"`      // successful tests per second of elapsed time
	RBPS   *float64 `json:"RBPS"`     // body bytes per second of elapsed time
	MTTFB  *float64 `json:"MTTFB_ms"` // includes DNS and connect
	TT     string   `json:"TT"`       // hours:minutes that the whole run took
}

// RouteRow is the row of one route.
type RouteRow struct {
	Number int // of the test: index of the route + 1
	Name   string
	Grinder
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

		NotAsLogged: t.answers.says(),
	}
	if t.unqueued != nil {
		wait, unqueued := t.clientWait.statistics(), t.unqueued.statistics()
		s.ClientWait, s.Unqueued = &wait, &unqueued
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

func (a *aggregate) grinder(elapsedS float64, tt string) Grinder {
	g := Grinder{Tests: a.test.n, Errors: a.errors, TT: tt}
	if a.test.n > 0 {
		mean, stddev := a.test.mean()/1000, a.test.stddev()/1000
		g.MTT, g.TTSD = &mean, &stddev
	}
	if a.ttfb.n > 0 {
		mean := a.ttfb.mean() / 1000
		g.MTTFB = &mean
	}
	if elapsedS > 0 {
		tps, rbps := float64(a.test.n)/elapsedS, float64(a.bytes)/elapsedS
		g.TPS, g.RBPS = &tps, &rbps
	}
	return g
}

// A generator is limited when its own lag is too long to be ignored, both in itself and beside what it measured.
const (
	limitLagMS    = 1.0
	limitFraction = 0.05
)

// limited judges the p99.9 of the lateness of all requests, also of those that then waited for a connection, against the
// p99.9 of the response time. Where there are fewer than 1,000 of either, nothing can be said and nothing is.
func limited(lateMS, responseMS *float64) (bool, string) {
	if lateMS == nil || responseMS == nil || *lateMS <= limitLagMS || *lateMS <= limitFraction**responseMS {
		return false, ""
	}
	// Verdicts know by its first words that lateness is all (SENT_LATE in plimsoll/analysis/evidence/generator.py).
	return true, fmt.Sprintf("the generator sent late: one request in a thousand by over %s, where the p99.9 response time is "+
		"%s; use a lower --speed or --rate, stop other programs on this machine, or give the generator processor cores of its own",
		inUnits(*lateMS), inUnits(*responseMS))
}

// inUnits writes milliseconds with three significant figures, in seconds from 1,000 ms on.
func inUnits(ms float64) string {
	if ms < 999.5 {
		return fmt.Sprintf("%.3g ms", ms)
	}
	return fmt.Sprintf("%.*f s", max(0, 2-int(math.Log10(ms/1000))), ms/1000)
}

// Statistics of one kind of time in milliseconds. Percentiles are exact order statistics (nearest rank); a
// statistic that cannot be given is nil, which is null in JSON. Censored has those that fall on failures: all that
// is known is that they are no less than this, which is nil if the time-out is unknown.
type Statistics struct {
	Mean   *float64 `json:"mean"`
	Stddev *float64 `json:"stddev"` // of the population
	Min    *float64 `json:"min"`
	P50    *float64 `json:"p50"`
	P90    *float64 `json:"p90"`
	P95    *float64 `json:"p95"`
	P99    *float64 `json:"p99"`
	P999   *float64 `json:"p99.9"`
	P9999  *float64 `json:"p99.99"`
	Max    *float64 `json:"max"`

	Censored map[string]*float64 `json:"censored,omitempty"`

	wrong map[string]bool // those of Censored that fall on wrong answers, which came before their time-out
}

func (c *histogram) statistics() Statistics {
	if c.n == 0 {
		return Statistics{}
	}
	mean, stddev := c.mean()/1000, c.stddev()/1000
	return Statistics{
		Mean: &mean, Stddev: &stddev, Min: msOf(c.min), Max: msOf(c.max),
		P50: c.percentileMS(p50), P90: c.percentileMS(p90), P95: c.percentileMS(p95),
		P99: c.percentileMS(p99), P999: c.percentileMS(p999), P9999: c.percentileMS(p9999),
	}
}
