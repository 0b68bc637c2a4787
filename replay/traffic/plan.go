package traffic

// What is to be sent of the logs, how much that will be, and what to say before it is.

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/forms"
)

// Whose host requests are sent with.
const (
	HostLog    = "log" // also that of an absolute URL
	HostTarget = "target"
)

// Plan selects requests of the logs and sets their pace.
type Plan struct {
	Speed float64       // times the recorded pace; 0: no pace, only the order counts
	Rate  float64       // requests a second at even distances, in place of the log's pace; 0: none
	Users bool          // the requests become visits of users
	Pause time.Duration // longest pause of the log that is kept, in the log's time; 0: any
	Burst bool          // requests of the same second at once
	Seed  int64         // of all that is drawn at random
	Loops int           // times through the log; 0: until Duration
	Limit uint64        // requests at most; 0: all
	Until time.Duration // nothing is due later; 0: no end

	Host string // HostLog, HostTarget; else the log's virtual host, where it names one

	Share  Share  // which clients' requests; the other fields are of all instances together
	Spread Spread // of proxies' requests

	From, To         time.Time // of the log; zero: no bound
	Include, Exclude []*regexp.Regexp
	Methods          map[string]bool
	Forms            forms.Rules // of what requests carry
	Unconditional    bool        // 304s and 206s are sent as plain requests
	NameClients      bool        // requests know their client's address
}

// Expected returns how long the run will take and how many requests it will send, as far as the counts of the logs
// tell. What is not known is 0.
func (t *Traffic) Expected() (whole time.Duration, total uint64) {
	total = t.logs.Totals.Valid * uint64(t.plan.Loops)
	if t.plan.Limit > 0 && (total == 0 || t.plan.Limit < total) {
		total = t.plan.Limit
	}
	switch {
	case t.plan.Users || t.plan.Speed == 0:
		return t.plan.Until, total
	case t.plan.Rate > 0:
		whole = time.Duration(float64(total) / t.plan.Rate * 1e9)
	default:
		whole = time.Duration(float64(t.loggedNS()) / t.plan.Speed * float64(t.plan.Loops))
	}
	if t.plan.Until > 0 && (whole == 0 || t.plan.Until < whole) {
		whole = t.plan.Until
	}
	return max(0, whole), total
}

// Warnings returns a sentence for what speaks against the logs' format, for what was skipped of them, and for each kind of
// time stamps that the schedule does not follow, with what it does instead.
func (t *Traffic) Warnings() []string {
	var out []string
	if text := t.logs.Format.Warning(); text != "" {
		out = append(out, text)
	}
	if n := t.logs.Totals.NULs; n > 0 {
		out = append(out, NULText(n))
	}
	if strays := t.logs.Totals.Strays; len(strays) > 0 {
		out = append(out, StrayText(t.logs.named, strays))
	}
	if text := SetBackText(t.logs.named, t.logs.Totals.SetBacks); text != "" {
		out = append(out, text)
	}
	if cut := t.shortened(); len(cut) > 0 {
		also := ""
		if others := len(cut) - 1; others > 0 {
			also = fmt.Sprintf(", and %d more", others)
		}
		out = append(out, fmt.Sprintf("%s: this pause is shortened to %v%s (see --max-gap)",
			PauseText(t.logs.named, cut), t.plan.Pause, also))
	}
	return out
}

// NULText says that bytes of zeros were skipped, and where they come from.
func NULText(bytes int64) string {
	return fmt.Sprintf("%d NUL bytes before lines were skipped, as a crash leaves them, or a log that was cut to nothing while its server wrote", bytes)
}

// StrayText says where the first of some strays is, and what becomes of them all.
func StrayText(paths []string, strays []accesslog.Strays) string {
	first, requests := strays[0], uint64(0)
	for _, s := range strays {
		requests += s.Requests
	}
	text := fmt.Sprintf("%s:%d: the time stamp %s strays from all others of this log, which are from %s to %s; ",
		paths[first.File], first.Line, instant(first.AtNS), instant(first.FirstNS), instant(first.LastNS))
	if requests == 1 {
		return text + "a replay takes the request for logged with the line before it"
	}
	return text + fmt.Sprintf("a replay takes this and %d more for logged with the lines before them", requests-1)
}

// SetBackText says where the first clock was set back, and what becomes of what follows; "" where none was.
func SetBackText(paths []string, steps []accesslog.SetBack) string {
	if len(steps) == 0 {
		return ""
	}
	first, also := steps[0], ""
	if n := len(slices.DeleteFunc(slices.Clone(steps), func(s accesslog.SetBack) bool { return s.Line == 0 })); n > 1 {
		also = fmt.Sprintf(" (and %d more)", n-1)
	}
	return fmt.Sprintf("%s:%d: the clock was set back, from %s to %s%s; a replay goes on in the order of the log, at its pace",
		paths[first.File], first.Line, instant(first.FromNS), instant(first.ToNS), also)
}

// PauseText says where the longest of some pauses is.
func PauseText(paths []string, pauses []accesslog.Pause) string {
	longest := slices.MaxFunc(pauses, func(a, b accesslog.Pause) int { return cmp.Compare(a.ToNS-a.FromNS, b.ToNS-b.FromNS) })
	return fmt.Sprintf("%s:%d: nothing was logged for %v, from %s to %s", paths[longest.File], longest.Line,
		time.Duration(longest.ToNS-longest.FromNS).Truncate(time.Second), instant(longest.FromNS), instant(longest.ToNS))
}

func instant(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }

// shortened returns the pauses of the log that the schedule shortens, as far as the counts of the logs tell.
func (t *Traffic) shortened() []accesslog.Pause {
	if t.plan.Users || t.plan.Speed == 0 || t.plan.Rate > 0 || t.plan.Pause == 0 {
		return nil
	}
	first, last := t.bounds()
	var out []accesslog.Pause
	for _, p := range t.logs.Totals.Pauses {
		if p.FromNS >= first && p.ToNS <= last {
			out = append(out, p)
		}
	}
	return out
}

// bounds returns the earliest and the latest instant of the logs that the plan wants, neither within a pause.
func (t *Traffic) bounds() (firstNS, lastNS int64) {
	firstNS, lastNS = t.logs.Totals.WholeSpan()
	if !t.plan.From.IsZero() {
		firstNS = max(firstNS, t.plan.From.UnixNano())
	}
	if !t.plan.To.IsZero() {
		lastNS = min(lastNS, t.plan.To.UnixNano())
	}
	for _, p := range t.logs.Totals.Pauses {
		if p.FromNS < firstNS && firstNS < p.ToNS {
			firstNS = p.ToNS
		}
		if p.FromNS < lastNS && lastNS < p.ToNS {
			lastNS = p.FromNS
		}
	}
	return firstNS, lastNS
}

// loggedNS returns how long the log is, in its own time: what the plan wants of it, without what is cut off its pauses.
func (t *Traffic) loggedNS() int64 {
	first, last := t.bounds()
	whole := last - first
	for _, p := range t.shortened() {
		whole -= p.ToNS - p.FromNS - t.plan.Pause.Nanoseconds()
	}
	return whole
}
