package record

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// says returns how many answers are not those of the log, and the likely cause; "" where they are few.
func (a *answers) says() string {
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
		strings.Join(kinds, ", "), likely(all[0].answerFor))
}

// likely returns the likely cause of an answer that is not the log's, with its remedy.
func likely(a answerFor) string {
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
