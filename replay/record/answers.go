// What the answers say of the target: they are not those of the log, or none come any more.

package record

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// answers counts the whole responses whose status is of another class than the log's.
type answers struct {
	compared, other uint64
	kinds           map[answerFor]uint64 // of the other ones
}

// answerFor is a status, and the one that the log has in its place.
type answerFor struct{ status, logged uint16 }

// closedByClient is nginx's status of a request whose client did not wait: no answer.
const closedByClient = 499

func (a *answers) add(r *Record) {
	if r.Error != None || r.LoggedStatus == 0 || r.LoggedStatus == closedByClient {
		return
	}
	a.compared++
	if classOf(r.Status) == classOf(r.LoggedStatus) {
		return
	}
	a.other++
	if a.kinds == nil {
		a.kinds = map[answerFor]uint64{}
	}
	a.kinds[answerFor{r.Status, r.LoggedStatus}]++
}

// classOf returns the first digit of a status. What is not modified is as good as what is sent again.
func classOf(status uint16) uint16 {
	if status == http.StatusNotModified {
		return 2
	}
	return status / 100
}

// Fewer answers than this, or a smaller part, say nothing of the run as a whole.
const (
	leastOther = 20
	otherPart  = 10 // one in so many
	mostKinds  = 3
)

// describe returns how many answers are not those of the log, and the likely cause; "" where they are few.
func (a *answers) describe() string {
	if a.other < leastOther || a.other*otherPart < a.compared {
		return ""
	}
	type kind struct {
		answerFor
		n uint64
	}
	var all []kind
	for what, n := range a.kinds {
		all = append(all, kind{what, n})
	}
	slices.SortFunc(all, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.status, b.status), cmp.Compare(a.logged, b.logged))
	})
	var kinds []string
	for _, k := range all[:min(mostKinds, len(all))] {
		text := fmt.Sprintf("%d for %d", k.status, k.logged)
		if len(all) > 1 {
			text += fmt.Sprintf(" (%s)", grouped(k.n))
		}
		kinds = append(kinds, text)
	}
	if len(all) > mostKinds {
		kinds = append(kinds, "others")
	}
	return fmt.Sprintf("%s of %s answers are not those of the log: %s. %s.", grouped(a.other), grouped(a.compared),
		strings.Join(kinds, ", "), likelyCause(all[0].answerFor))
}

// likelyCause returns the likely cause of an answer that is not the log's, with its remedy.
func likelyCause(a answerFor) string {
	const host = "give the site's name as --target, and the address with --connect-to, or see --host"
	switch {
	case a.logged >= 400 && a.status < 400:
		return "The target answers what the site refused then: it is another site, or it has been fixed since"
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusProxyAuthRequired:
		return "The target requires a login or refuses this client: give --header-file or --accounts, or see its access rules"
	case a.status == http.StatusTooManyRequests:
		return "The target limits how much one address may ask for: see its rate limits"
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		return "The target has no such paths: is it the site of this log, with its files? Or it knows the site under another Host: " + host
	case a.status == http.StatusBadRequest, a.status == http.StatusMisdirectedRequest:
		return "The target may not know the Host that was sent: " + host
	case a.status >= 500:
		return "The target fails: see its error log"
	case a.status >= 300 && a.status < 400:
		return "The target leads elsewhere: to its own name or to https (" + host + "), or to a login (--accounts)"
	}
	return "The target may be another site, or know this one under another Host: " + host
}

// silence watches for a target that stops answering: from its last answer to the end of the run nothing came, though
// requests were sent. It takes records in the order in which they were done, or nearly so.
type silence struct {
	answered bool
	sinceNS  int64 // when the last answer was whole; 0 before the first
	requests uint64
	kinds    [256]uint64
}

// A silence says something when so many requests were sent in it, and it lasted so long.
const (
	silentRequests = 10
	silentFor      = 2 * time.Second
	silentShare    = 100 // a hundredth of the run
)

func (s *silence) add(r *Record) {
	switch {
	case r.Error == None || r.Status != 0 || r.TTFBUS != 0:
		if done := r.DoneNS(); !s.answered || done > s.sinceNS {
			*s = silence{answered: true, sinceNS: done}
		}
	case r.Error == Aborted: // given up by us
	case r.DueNS+int64(r.LagUS)*1000 >= s.sinceNS: // sent after the last answer, so that nobody had answered since
		s.requests++
		s.kinds[r.Error]++
	}
}

// verdict returns why a run that lasted until endNS has a dead target; "" if it has none.
func (s *silence) verdict(endNS int64) string {
	lasted := time.Duration(endNS - s.sinceNS)
	if s.requests < silentRequests || lasted < max(silentFor, time.Duration(endNS)/silentShare) {
		return ""
	}
	since := "gave no answer at all"
	if s.answered {
		since = fmt.Sprintf("gave no answer after %.1f s", time.Duration(s.sinceNS).Seconds())
	}
	usual := Other
	for kind := range s.kinds {
		if s.kinds[kind] > s.kinds[usual] {
			usual = ErrorKind(kind)
		}
	}
	return fmt.Sprintf("the target %s: the last %d requests failed within %.1f s, %d of them with %s; see why it ended, and run this again",
		since, s.requests, lasted.Seconds(), s.kinds[usual], usual)
}

// endStatus returns how a run ended that its program calls complete: not so where its target died.
func endStatus(status Status, reason string, died string) (Status, string) {
	if status == Complete && died != "" {
		return Failed, died
	}
	return status, reason
}
