// What users of The Grinder read: its table, and its data log.

package record

import (
	"fmt"
	"strconv"
	"time"
)

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

// aggregate is what The Grinder's table says of one route.
type aggregate struct {
	test   moments // service time of successful requests
	errors uint64
	bytes  uint64
	ttfb   moments // of successful requests with a first byte
}

func (a *aggregate) add(r *Record) {
	a.bytes += uint64(max(r.Bytes, 0))
	if r.Error != None {
		a.errors++
		return
	}
	a.test.add(uint64(r.TotalUS))
	if r.TTFBUS > 0 {
		a.ttfb.add(uint64(r.TTFBUS))
	}
}

func (a *aggregate) merge(o *aggregate) {
	a.test.merge(&o.test)
	a.ttfb.merge(&o.ttfb)
	a.errors += o.errors
	a.bytes += o.bytes
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

// hoursMinutes returns a time as The Grinder's users write it: whole hours and minutes.
func hoursMinutes(seconds float64) string {
	minutes := int64(seconds / 60)
	return fmt.Sprintf("%d:%02d", minutes/60, minutes%60)
}

func routeName(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "route " + strconv.Itoa(i)
}

// grinderLog writes The Grinder 3.11's data log.
type grinderLog struct {
	out  appendFile
	text []byte
}

const grinderHeader = "Thread, Run, Test, Start time (ms since Epoch), Test time, Errors, HTTP response code, HTTP response length, " +
	"HTTP response errors, Time to resolve host, Time to establish connection, Time to first byte, New connections\n"

// The Grinder's threads are few; a client's number is folded into this many, so that per-thread tools cope.
const grinderThreads = 1000

// lines returns the data log's lines for records, without the warm-up, as in every other statistic.
func (g *grinderLog) lines(records []Record, started time.Time) []byte {
	g.text = g.text[:0]
	for i := range records {
		if r := &records[i]; r.Flags&Warmup == 0 {
			g.text = appendGrinderLine(g.text, r, started)
		}
	}
	return g.text
}

// appendGrinderLine appends one line. Times to resolve, to connect and to the first byte each count from the start of
// the test and include the ones before them. A status of 400 or more is a response error and no error of the test.
func appendGrinderLine(b []byte, r *Record, started time.Time) []byte {
	startMS := started.Add(time.Duration(r.DueNS) + time.Duration(r.LagUS)*time.Microsecond).UnixMilli()
	connectUS := uint64(0)
	if r.ConnectUS > 0 {
		connectUS = uint64(r.DNSUS) + uint64(r.ConnectUS) + uint64(r.TLSUS)
	}
	fields := [...]int64{
		int64(r.Client % grinderThreads), 0, int64(r.Route) + 1, startMS, int64(r.TotalUS / 1000), oneIf(r.Error != None),
		int64(r.Status), max(r.Bytes, 0), oneIf(r.Status >= 400),
		int64(r.DNSUS / 1000), int64(connectUS / 1000), int64(r.TTFBUS / 1000), oneIf(r.Flags&Reused == 0),
	}
	for i, f := range fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, f, 10)
	}
	return append(b, '\n')
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
