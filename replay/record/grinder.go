// What users of The Grinder read: its table, and its data log.

package record

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

// Of a run that is shorter, hours and minutes would say little: TT is in seconds.
const shortS = 600

// row is one of the times that the table has.
type row struct {
	name string
	s    Statistics
}

// WriteTable prints The Grinder's table, one row per route and a total, and the percentiles below it; then what no table
// shows.
func (s Summary) WriteTable(w io.Writer) {
	heading, tt := "TT (h:m)", s.Grinder.TT
	if s.DurationS < shortS {
		heading, tt = "TT (s)", strconv.FormatFloat(s.DurationS, 'f', 1, 64)
	}
	rows := [][]string{{"Test", "Tests", "Errors", "MTT (ms)", "TTSD (ms)", "TPS", "RBPS", "MTTFB (ms)", heading}}
	for _, r := range s.Routes {
		rows = append(rows, append([]string{strconv.Itoa(r.Number) + " " + r.Name}, r.cells(tt)...))
	}
	rows = append(rows, append([]string{"Total"}, s.Grinder.cells(tt)...))
	writeAligned(w, rows)

	fmt.Fprintln(w)
	lines := []row{{"response", s.Response}, {"service", s.Service}, {"first byte", s.TTFB}, {"lag", s.Lag}}
	if lag, late := s.Lag.cells(), s.Late.cells(); !slices.Equal(lag, late) {
		lines = append(lines, row{"late", s.Late})
	}
	rows = [][]string{{"ms"}}
	for _, f := range figures {
		rows[0] = append(rows[0], f.name)
	}
	for _, line := range lines {
		rows = append(rows, append([]string{line.name}, line.s.cells()...))
	}
	if s.ClientWait != nil {
		rows = append(rows, append([]string{"client's wait"}, s.ClientWait.cells()...), append([]string{"without it"}, s.Unqueued.cells()...))
	}
	writeAligned(w, rows)
	if s.ClientWait != nil {
		fmt.Fprintf(w, "\nWaited for a connection of their own client, which is part of the response time and not the server's doing: %d of %d requests (%s).\n",
			s.Requests.ClientQueued, s.Requests.Sent-s.Requests.Warmup, share(s.Requests.ClientQueued, s.Requests.Sent-s.Requests.Warmup))
	}
	if s.NotAsLogged != "" {
		fmt.Fprintf(w, "\n%s\n", s.NotAsLogged)
	}
	if m := s.Members; m != nil {
		fmt.Fprintf(w, "\nMembers: %d clients with %d accounts, %d of %d requests (%s), %d sent to the login.\n",
			m.Clients, m.Accounts, m.Requests, s.Requests.Sent-s.Requests.Warmup, share(m.Requests, s.Requests.Sent-s.Requests.Warmup), m.SentToLogin)
	}
	if len(s.Limits) > 0 {
		fmt.Fprintln(w)
	}
	for _, v := range s.Limits {
		fmt.Fprintf(w, "Limit %s %s: %s.\n", v.Limit, v.Outcome, v.Says)
	}
	if n := s.Requests.Retried; n > 0 {
		fmt.Fprintf(w, "\nSent again on a fresh connection, since the server closed the kept-open one: %d of %d requests (%s).\n",
			n, s.Requests.Sent, share(n, s.Requests.Sent))
	}
}

// share returns a part of a whole as a percentage with three digits.
func share(part, whole uint64) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(max(1, whole)))
}

func (g Grinder) cells(tt string) []string {
	return []string{
		strconv.FormatUint(g.Tests, 10), strconv.FormatUint(g.Errors, 10), decimals(g.MTT, 2), decimals(g.TTSD, 2),
		decimals(g.TPS, 2), decimals(g.RBPS, 0), decimals(g.MTTFB, 2), tt,
	}
}

func (s Statistics) cells() []string {
	var cells []string
	for _, f := range figures {
		least, censored := s.Censored[f.name]
		switch {
		case s.wrong[f.name]:
			cells = append(cells, "wrong answer")
		case censored:
			cells = append(cells, atLeast(least))
		default:
			cells = append(cells, decimals(*f.of(&s), 3))
		}
	}
	return cells
}

// decimals returns a number rounded to a number of decimal places; a dash if it is nil.
func decimals(f *float64, places int) string {
	if f == nil {
		return "-"
	}
	return strconv.FormatFloat(*f, 'f', places, 64)
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

// writeAligned prints the first column to the left and all others to the right.
func writeAligned(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
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
