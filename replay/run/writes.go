package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"plimsoll/replay/members"
)

// reading are the methods that change nothing (RFC 9110, 9.2.1).
var reading = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

// mayWrite refuses to change a site that is not on this machine, unless that is allowed.
func (r *Replay) mayWrite() error {
	method := changing(r.setup.plan.Methods)
	if method == "" || r.command.AllowWrites || isLoopback(r.target.Addresses[0]) {
		return nil
	}
	return UsageError{fmt.Errorf("--methods: %s may change a site, and %s is not on this machine: give --allow-writes if it is a clone that may be changed",
		method, r.target.URL)}
}

// changing returns the first method that may change a site; "" if none does.
func changing(methods map[string]bool) string {
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		if !slices.Contains(reading, method) {
			return method
		}
	}
	return ""
}

// joinSenders gives the clients that send forms sessions in which they keep cookies and tokens.
func (r *Replay) joinSenders(ctx context.Context) error {
	senders, err := r.logs.Senders(ctx, r.setup.plan)
	switch {
	case err != nil:
		return UsageError{err}
	case len(senders)+len(r.members) == 0:
		return nil
	}
	site := &members.Site{Target: r.target, Headers: r.setup.headers}
	r.sessions = site.Join(r.members, members.Senders{Clients: senders, Rules: r.setup.plan.Forms})
	return nil
}
