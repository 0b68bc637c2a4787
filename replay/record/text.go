// The result of a run as text: what happened, the percentiles, The Grinder's table.

package record

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/replay/served"
)

// WriteText prints what happened, in a sentence and an answer for each limit; then the percentiles, The Grinder's table
// with a row per route and a total, and what neither shows.
func (s Summary) WriteText(w io.Writer) {
	measured := s.Requests.Sent - s.Requests.Warmup
	fmt.Fprintln(w, s.sentence())
	for _, v := range s.Limits {
		fmt.Fprintf(w, "Limit %s %s: %s.\n", v.Limit, v.Outcome, v.Says)
	}
	fmt.Fprintln(w)
	writeAligned(w, s.percentiles())
	if s.ClientWait != nil {
		fmt.Fprintf(w, "\nWaited for a connection of their own client, which is part of the response time and not the server's doing: %d of %d requests (%s).\n",
			s.Requests.ClientQueued, measured, share(s.Requests.ClientQueued, measured))
	}
	fmt.Fprintln(w, "\nThe Grinder's table")
	writeAligned(w, s.grinderTable())
	if s.NotAsLogged != "" {
		fmt.Fprintf(w, "\n%s\n", s.NotAsLogged)
	}
	if s.Served != nil {
		fmt.Fprintf(w, "\nFrom a cache: %d of %d answers (%s).\n", s.Served[served.Names[served.Hit]], s.Requests.OK,
			share(s.Served[served.Names[served.Hit]], s.Requests.OK))
	}
	if m := s.Members; m != nil {
		fmt.Fprintf(w, "\nMembers: %d clients with %d accounts, %d of %d requests (%s), %d sent to the login.\n",
			m.Clients, m.Accounts, m.Requests, measured, share(m.Requests, measured), m.SentToLogin)
	}
	if n := s.Requests.Retried; n > 0 {
		fmt.Fprintf(w, "\nSent again on a fresh connection, since the server closed the kept-open one: %d of %d requests (%s).\n",
			n, s.Requests.Sent, share(n, s.Requests.Sent))
	}
}

// sentence says what happened: how many requests, how many failed, and the slowest one in a thousand.
func (s Summary) sentence() string {
	measured := s.Requests.Sent - s.Requests.Warmup
	if measured == 0 {
		return "No request was measured."
	}
	what, figure, orMore := "The slowest one in a thousand", "p99.9", " or more"
	tail := s.Response.P999
	if !p999.isEnough(measured) {
		what, figure, orMore = "The slowest", "max", ""
		tail = s.Response.Max
	}
	least, failed := s.Response.Censored[figure]
	switch {
	case s.Response.wrong[figure]:
		what += " is a wrong answer"
	case failed && least == nil:
		what += " failed"
	case failed:
		what += " took at least " + strings.TrimPrefix(atLeast(least), "≥ ")
	case tail != nil:
		what += " took " + roundedTime(*tail) + orMore
	}
	failures := "none failed"
	if n := s.Requests.Failures; n > 0 {
		failures = fmt.Sprintf("%d failed (%s)", n, share(n, measured))
	}
	noun := "requests"
	if measured == 1 {
		noun = "request"
	}
	return fmt.Sprintf("%d %s, %s. %s.", measured, noun, failures, what)
}

// percentiles returns the rows of the times: all requests, and apart from them what clients waited for themselves.
func (s Summary) percentiles() [][]string {
	rows := [][]string{{"ms"}}
	for _, f := range figures {
		rows[0] = append(rows[0], f.name)
	}
	add := func(name string, times Statistics) { rows = append(rows, append([]string{name}, times.cells()...)) }
	add("response", s.Response)
	add("service", s.Service)
	add("first byte", s.TTFB)
	add("lag", s.Lag)
	if !slices.Equal(s.Lag.cells(), s.Late.cells()) {
		add("late", s.Late)
	}
	if s.ClientWait != nil {
		add("client's wait", *s.ClientWait)
		add("without it", *s.Unqueued)
	}
	return rows
}

// Of a run that is shorter, hours and minutes would say little: TT is in seconds.
const shortS = 600

func (s Summary) grinderTable() [][]string {
	heading, tt := "TT (h:m)", s.Grinder.TT
	if s.DurationS < shortS {
		heading, tt = "TT (s)", strconv.FormatFloat(s.DurationS, 'f', 1, 64)
	}
	rows := [][]string{{"Test", "Tests", "Errors", "MTT (ms)", "TTSD (ms)", "TPS", "RBPS", "MTTFB (ms)", heading}}
	for _, r := range s.Routes {
		rows = append(rows, append([]string{strconv.Itoa(r.Number) + " " + r.Name}, r.cells(tt)...))
	}
	return append(rows, append([]string{"Total"}, s.Grinder.cells(tt)...))
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

// share returns a part of a whole as a percentage with three digits.
func share(part, whole uint64) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(max(1, whole)))
}
