package traffic

// Addresses behind which are many visitors, and the clients over which their requests are spread.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/record"
)

// Bounds of what a census holds, and what it takes for more than one visitor. What comes past the first three is
// not counted and not spread.
const (
	mostCounted   = 1 << 20 // clients that are distinguished
	mostAddresses = 1 << 18
	mostWatched   = 1 << 16 // clients of large addresses

	fewestRequests = 50   // of an address, before it is looked at
	smallestPart   = 1000 // an address that has less than one request in so many does not matter
	fewestAgents   = 16   // with good answers within an hour behind one address: no household has as many, and a scanner gets no pages
	agentsNS       = 3600 * int64(1e9)
	binNS          = int64(5e9)
	fewestBins     = 4                    // in a row, 20 s: a browser rests when it has loaded a page
	binRequests    = 50                   // a bin: 10 requests a second, where the log has no durations
	binUnderWayNS  = 6 * binNS            // a bin: more at once than a browser makes, where it has
	longestNS      = 30 * int64(1e9)      // of a request: a chat is not load
	furthestBack   = 30 * 60 * int64(1e9) // logs are ordered by completion; further back a clock was set
	recentTargets  = 64                   // among which a repeated one is looked for
	repeatedPart   = 4                    // one in so many is repeated: visitors repeat each other's, a crawler asks once
	longestHeld    = 30 * time.Second     // for which a request is taken to hold a connection at most, by --timeout
)

// robot matches user agents that ask one after the other at any rate.
var robot = regexp.MustCompile(`(?i)bot\b|bot/|crawl|spider|slurp|curl|wget|python|scan|monitor|check`)

// Census is who sends the requests of a plan, by the logs.
type Census struct {
	Clients int     // addresses and user agents, as far as they are distinguished
	Largest float64 // share of the requests that the largest client has, 0 to 1
	Proxies []Proxy // addresses that stand for many visitors, the largest first
	Over    int     // clients over which their requests are spread; 0: they are not
}

// Proxy is an address that stands for many visitors.
type Proxy struct {
	Address string // hostile
	Share   float64
}

// Capacity is how many connections there may be, of one client and in all, and how long a request may hold one.
type Capacity struct {
	PerClient, InAll int
	Timeout          time.Duration
}

// Census counts the clients that send under a plan, and returns how the requests of proxies are to be spread. It
// compares the clocks of the logs, too, and keeps in them what it found.
func (l *Logs) Census(ctx context.Context, plan Plan, capacity Capacity) (Census, Spread, error) {
	capacity.Timeout = min(capacity.Timeout, longestHeld)
	c := census{plan: plan, certain: l.VisitorWarning() != "", windowNS: windowNS(plan, capacity.Timeout), addresses: map[uint32]*address{}, clients: map[uint32]uint32{}}
	t := New(plan, l, noCounter{}, nil)
	from, to := t.fromTo()
	clocks := newClocks(len(l.named))
	err := l.source.Each(ctx, l.Format, &l.Totals, func(r *accesslog.Request) bool {
		method := methodText(r.Method)
		known := method == "" && !l.hasMethod || plan.Methods[method]
		if known && r.TimeNS >= from && r.TimeNS < to && t.isWanted(r) {
			clocks.add(r, c.add(r))
		}
		return plan.Limit == 0 || c.requests < plan.Limit
	})
	if err != nil {
		return Census{}, Spread{}, err
	}
	l.AheadNS = clocks.measureOffsets()
	found, over := c.result(capacity)
	return found, Spread{over, uint64(plan.Seed)}, nil
}

// windowNS returns how much of the log's time passes while a request takes its time-out.
func windowNS(plan Plan, timeout time.Duration) int64 {
	return max(int64(time.Second), int64(float64(timeout)*cmp.Or(plan.Speed, 1)))
}

// census counts. An address gets details once it has a part of the requests, so that their number is bounded.
type census struct {
	plan      Plan
	certain   bool // another field of the log has the visitors' addresses
	windowNS  int64
	requests  uint64
	watched   int
	addresses map[uint32]*address
	clients   map[uint32]uint32 // requests by client
}

type address struct {
	requests uint64
	name     string                    // hostile; of a large one
	clients  map[uint32]*watchedClient // by number; nil: it is not large
	hour     int64
	agents   int // of this hour
	most     int // of any hour
}

// watchedClient is one client of a large address.
type watchedClient struct {
	requests, timed, repeated uint64
	robot                     bool
	hour                      int64 // in which it got a good answer
	bin, window               int64
	inBin, inWindow           uint64
	binUnderWayNS             int64
	busy, crowded             int // bins in a row
	sustained, parallel       bool
	most                      uint64 // in a window
	recent                    [recentTargets]uint32
}

// add counts a request, and returns the number of its client.
func (c *census) add(r *accesslog.Request) (client uint32) {
	c.requests++
	key := numberClient(r.Host, nil)
	a := c.addresses[key]
	if a == nil && len(c.addresses) < mostAddresses {
		a = &address{}
		c.addresses[key] = a
	}
	client = numberClient(r.Host, r.UserAgent)
	if n, known := c.clients[client]; known || len(c.clients) < mostCounted {
		c.clients[client] = n + 1
	}
	if a == nil {
		return client
	}
	if a.requests++; a.clients == nil && a.requests >= fewestRequests && a.requests*smallestPart >= c.requests {
		a.name, a.clients = string(r.Host), map[uint32]*watchedClient{}
	}
	if a.clients == nil {
		return client
	}
	one := a.clients[client]
	if one == nil {
		if c.watched >= mostWatched {
			return client
		}
		c.watched++
		one = &watchedClient{robot: robot.Match(r.UserAgent)}
		a.clients[client] = one
	}
	one.add(r, c.windowNS)
	if hour := r.TimeNS / agentsNS; r.Status < 400 && !one.robot && one.hour != hour {
		one.hour = hour
		if a.hour != hour {
			a.hour, a.agents = hour, 0
		}
		a.agents++
		a.most = max(a.most, a.agents)
	}
	return client
}

func (o *watchedClient) add(r *accesslog.Request, windowNS int64) {
	o.requests++
	target := numberClient(r.Target, nil)
	if slot := &o.recent[target%recentTargets]; *slot == target {
		o.repeated++
	} else {
		*slot = target
	}
	if bin := r.TimeNS / binNS; bin > o.bin || bin < o.bin-furthestBack/binNS {
		o.endBin(bin == o.bin+1)
		o.bin = bin
	}
	o.inBin++
	if r.DurationNS >= 0 {
		o.timed++
		o.binUnderWayNS += min(r.DurationNS, longestNS)
	}
	if window := r.TimeNS / windowNS; window > o.window || window < o.window-furthestBack/windowNS-1 {
		o.window, o.inWindow = window, 0
	}
	o.inWindow++
	o.most = max(o.most, o.inWindow)
}

// endBin looks at the bin that is over, and begins another, the next or a later one.
func (o *watchedClient) endBin(next bool) {
	o.busy++
	if o.inBin < binRequests {
		o.busy = 0
	}
	o.crowded++
	if o.binUnderWayNS <= binUnderWayNS {
		o.crowded = 0
	}
	o.sustained = o.sustained || o.busy >= fewestBins
	o.parallel = o.parallel || o.crowded >= fewestBins
	if !next {
		o.busy, o.crowded = 0, 0
	}
	o.inBin, o.binUnderWayNS = 0, 0
}

// isMany reports whether a client asks as no single visitor does: for more at once than a browser. Where the log does not
// say how long requests took, for many a second without rest, and for the same again and again; a robot may do that.
func (o *watchedClient) isMany() bool {
	if 2*o.timed >= o.requests {
		return o.parallel
	}
	return o.sustained && !o.robot && o.repeated*repeatedPart >= o.requests
}

// result returns what was counted, and over how many clients each client of a proxy is spread: so many that no request
// waits for a connection of its client, even if each takes its time-out, but no more than there can be connections in
// all. More would each have to close another's.
func (c *census) result(capacity Capacity) (Census, map[uint32]uint32) {
	found, over := Census{Clients: len(c.clients)}, map[uint32]uint32{}
	if c.requests == 0 {
		return found, over
	}
	for _, n := range c.clients {
		found.Largest = max(found.Largest, float64(n)/float64(c.requests))
	}
	var proxies []*address
	wanted := map[uint32]float64{}
	var all float64
	for _, a := range c.addresses {
		if a.requests*smallestPart < c.requests || !(a.isProxy() || c.certain) {
			continue
		}
		proxies = append(proxies, a)
		for client, one := range a.clients {
			load := float64(one.most)
			if c.plan.Rate > 0 {
				load = c.plan.Rate * capacity.Timeout.Seconds() * float64(one.requests) / float64(c.requests)
			}
			wanted[client] = math.Ceil(load / float64(capacity.PerClient))
			all += wanted[client]
		}
	}
	part := min(1, float64(capacity.InAll)/all)
	for _, a := range proxies {
		clients := 0
		for client := range a.clients {
			over[client] = max(1, uint32(wanted[client]*part))
			clients += int(over[client])
		}
		if clients > len(a.clients) {
			found.Proxies = append(found.Proxies, Proxy{a.name, float64(a.requests) / float64(c.requests)})
			found.Over += clients
		}
	}
	slices.SortFunc(found.Proxies, func(a, b Proxy) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Address, b.Address))
	})
	return found, over
}

func (a *address) isProxy() bool {
	many := a.most >= fewestAgents
	for _, one := range a.clients {
		one.endBin(true)
		many = many || one.isMany()
	}
	return many
}

// Share returns which part of the requests came from proxies.
func (c Census) Share() (share float64) {
	for _, p := range c.Proxies {
		share += p.Share
	}
	return share
}

// Facts returns what run.json says of the clients.
func (c Census) Facts() *record.Clients {
	share := func(part float64) float64 { return math.Round(part*1e4) / 1e4 }
	facts := &record.Clients{
		Counted: c.Clients, LargestShare: share(c.Largest), Proxies: len(c.Proxies), ProxiesShare: share(c.Share()),
	}
	if c.Over > 0 {
		facts.SpreadOver = &c.Over
	}
	return facts
}

// Warning says that addresses are a proxy's, and what becomes of their requests; "" if no address is a proxy's.
func (c Census) Warning(perClient int) string {
	if len(c.Proxies) == 0 {
		return ""
	}
	const shown = 3
	var names []string
	for _, p := range c.Proxies[:min(shown, len(c.Proxies))] {
		names = append(names, p.Address)
	}
	if more := len(c.Proxies) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	looks, their, address := "looks", "its", "a proxy's address"
	if len(c.Proxies) > 1 {
		looks, their, address = "look", "their", "proxies' addresses"
	}
	text := fmt.Sprintf("%s %s like %s, with %.0f %% of the requests from many visitors: ",
		strings.Join(names, ", "), looks, address, 100*c.Share())
	if c.Over == 0 {
		return text + fmt.Sprintf("--clients log sends them as the log's own clients, with %d connections each; what waits for those says nothing of the server",
			perClient)
	}
	return text + fmt.Sprintf("%s requests are spread over %d clients (--clients log keeps the log's own)", their, c.Over)
}

// Spread deals the requests of some clients of the log out to many. The zero Spread keeps the log's own.
type Spread struct {
	over map[uint32]uint32 // how many, by client
	seed uint64
}

// of numbers the client of a request: the same one in every run and on every machine.
func (s Spread) of(r *accesslog.Request) uint32 {
	client := numberClient(r.Host, r.UserAgent)
	n := s.over[client]
	if n < 2 {
		return client
	}
	line := s.seed*0x9e3779b97f4a7c15 + uint64(r.File)<<40 + r.Line
	drawn := (uint64(mixBits(uint32(line>>32)^mixBits(uint32(line)))) * uint64(n)) >> 32
	return mixBits(client + 1 + uint32(drawn))
}
