package exchange

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/record"
)

// story is what happens to a pool, line by line: at which millisecond, what, and after the arrow all that the pool does.
type story struct {
	says   string
	bounds Bounds // where one is 0, it does not matter
	tls    bool
	lines  string
}

func (b Bounds) orLoose() Bounds {
	loose := Bounds{IdleTimeout: 5 * time.Second, MaxConnections: 100, MaxQueued: 100, PerClient: 6}
	if b.IdleTimeout != 0 {
		loose.IdleTimeout = b.IdleTimeout
	}
	if b.MaxConnections != 0 {
		loose.MaxConnections = b.MaxConnections
	}
	if b.MaxQueued != 0 {
		loose.MaxQueued = b.MaxQueued
	}
	if b.PerClient != 0 {
		loose.PerClient = b.PerClient
	}
	return loose
}

var connections = []story{
	{says: "a request goes out when it is due, and its record says when what came", lines: `
		10 due a1        → open 1 a1
		13 opened 1      → send a1 1
		20 came a1:200:0
		25 answered a1   → a1 ok 200 connect=3 first=10 total=15`},
	{says: "a generator that is late says so", lines: `
		10 due a1:late   → open 1 a1
		10 opened 1      → send a1 1
		11 answered a1   → a1 ok 200 lag=2 late=2 first=1 total=1`},
	{says: "what is due in the warm-up is marked", lines: `
		1 due a1         → open 1 a1
		2 due b1         → open 2 b1
		3 opened 1 2     → send a1 1; send b1 2
		4 answered a1 b1 → a1 ok 200 connect=2 first=3 total=3 warmup; b1 ok 200 connect=1 first=2 total=2`},
	{says: "a connection is kept for the client's next request, for no other client's, and not for ever", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		9 answered a1:404 → a1 ok 404 first=7 total=7
		10 due a2 b1     → send a2 1; open 2 b1
		19 answered a2   → a2 ok 200 first=9 total=9 reused
		1010 passes      → close 2; b1 timeout connect=1000 total=1000
		5018 passes
		5019 passes      → close 1`},
	{says: "a server that ends its connections gets a new one each time", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1:close → close 1; a1 ok 200 first=1 total=1
		4 due a2         → open 2 a2`},
	{says: "nobody listens", lines: `
		2 due a1         → open 1 a1
		5 refused 1      → close 1; a1 connect_refused connect=3 total=3`},
	{says: "what came before a connection ended counts", lines: `
		2 due a1 b1      → open 1 a1; open 2 b1
		2 opened 1 2     → send a1 1; send b1 2
		5 came a1:200:7
		9 reset 1        → close 1; a1 reset 200 bytes=7 first=3 total=7
		9 garbage 2      → close 2; b1 bad_response total=7`},
	{says: "an idle connection that ends is nobody's loss", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		5 closed 1       → close 1
		6 due a2         → open 2 a2`},
	{says: "a client has six connections; what finds them busy waits, in order", lines: `
		2 due a1 a2 a3 a4 a5 a6 → open 1 a1; open 2 a2; open 3 a3; open 4 a4; open 5 a5; open 6 a6
		4 due a7 a8:late
		4 opened 1 2 3 4 5 6 → send a1 1; send a2 2; send a3 3; send a4 4; send a5 5; send a6 6
		10 answered a3   → send a7 3; a3 ok 200 connect=2 first=8 total=8
		12 answered a1   → send a8 1; a1 ok 200 connect=2 first=10 total=10
		20 answered a7 a8 → a7 ok 200 lag=6 first=10 total=10 reused queued own; a8 ok 200 lag=10 late=2 first=8 total=8 reused queued own`},
	{says: "the connection that was used last is used first", lines: `
		2 due a1 a2      → open 1 a1; open 2 a2
		2 opened 1 2     → send a1 1; send a2 2
		5 answered a1 a2 → a1 ok 200 first=3 total=3; a2 ok 200 first=3 total=3
		7 due a3 a4      → send a3 2; send a4 1
		9 answered a3 a4 → a3 ok 200 first=2 total=2 reused; a4 ok 200 first=2 total=2 reused
		9 due a5         → send a5 1`},
	{says: "HTTP/1.0 has a connection a request", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		4 due a2:1.0     → open 2 a2
		5 opened 2       → send a2 2
		9 answered a2    → close 2; a2 ok 200 connect=1 first=5 total=5`},
	{says: "where a client has all its connections, its longest idle one makes room for HTTP/1.0",
		bounds: Bounds{PerClient: 2}, lines: `
		2 due a1 a2      → open 1 a1; open 2 a2
		2 opened 1 2     → send a1 1; send a2 2
		5 answered a2 a1 → a2 ok 200 first=3 total=3; a1 ok 200 first=3 total=3
		6 due a3:1.0     → close 2; open 3 a3`},
	{says: "HTTP/1.0 has a connection a request also where it waited",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 due a2:1.0
		5 answered a1    → close 1; open 2 a2; a1 ok 200 first=3 total=3`},
	{says: "a logged 304 asks with what the server's last 200 said, to whomever that was", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1:v1 → a1 ok 200 first=1 total=1
		4 due b1:304     → open 2 b1
		4 opened 2       → send b1 2 if not v1
		5 answered b1:304 → b1 ok 304 first=1 total=1
		6 due b2         → send b2 2`},
}

var caps = []story{
	{says: "at the cap, the longest idle connection of another client is closed for who has none",
		bounds: Bounds{MaxConnections: 2}, lines: `
		2 due a1 b1      → open 1 a1; open 2 b1
		2 opened 1 2     → send a1 1; send b1 2
		5 answered b1 a1 → b1 ok 200 first=3 total=3; a1 ok 200 first=3 total=3
		6 due c1         → close 2; open 3 c1
		7 due b2         → close 1; open 4 b2`},
	{says: "where no connection is idle, clients without one get theirs in order",
		bounds: Bounds{MaxConnections: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 due b1 c1 b2
		5 answered a1    → close 1; open 2 b1; a1 ok 200 first=3 total=3
		5 opened 2       → send b1 2
		6 due a2
		7 answered b1    → send b2 2; b1 ok 200 lag=2 first=2 total=2 queued
		8 answered b2    → close 2; open 3 c1; b2 ok 200 lag=4 first=1 total=1 reused queued
		9 refused 3      → close 3; open 4 a2; c1 connect_refused lag=5 connect=1 total=1 queued`},
	{says: "so do clients that could have more, each one at a time",
		bounds: Bounds{MaxConnections: 3}, lines: `
		2 due a1 b1 d1   → open 1 a1; open 2 b1; open 3 d1
		2 opened 1 2 3   → send a1 1; send b1 2; send d1 3
		3 due a2 a3 c1
		5 answered b1    → close 2; open 4 a2; b1 ok 200 first=3 total=3
		6 answered d1    → close 3; open 5 c1; d1 ok 200 first=4 total=4
		7 answered a1    → send a3 1; a1 ok 200 first=5 total=5`},
	{says: "no connection is closed for a client that waits no longer",
		bounds: Bounds{MaxConnections: 1, PerClient: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 due b1
		4 due a2
		900 answered a1  → send a2 1; a1 ok 200 first=898 total=898
		1100 passes      → b1 timeout lag=1000 queued
		1110 answered a2 → a2 ok 200 lag=896 first=210 total=210 reused queued own`},
	{says: "when too many wait, further ones are skipped, and nothing is closed for them",
		bounds: Bounds{MaxConnections: 1, PerClient: 1, MaxQueued: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 due a2 b1      → b1 skipped: cap_reached
		5 answered a1    → send a2 1; a1 ok 200 first=3 total=3
		6 answered a2    → a2 ok 200 lag=2 first=1 total=1 reused queued own`},
}

var retries = []story{
	{says: "a kept connection that turns out to be closed: the request is sent again on a new one, and the clock runs on", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		5 due a2         → send a2 1
		7 closed 1       → close 1; again; open 2 a2
		9 opened 2       → send a2 2
		12 answered a2   → a2 ok 200 connect=2 first=7 total=7`},
	{says: "it is sent again once only", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		5 due a2:HEAD    → send a2 1
		7 reset 1        → close 1; again; open 2 a2
		9 opened 2       → send a2 2
		10 reset 2       → close 2; a2 reset connect=2 total=5`},
	{says: "what may change something is not sent again", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		5 due a2:POST    → send a2 1
		7 closed 1       → close 1; a2 closed_early total=2 reused`},
	{says: "nor what has part of its answer", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		5 due a2         → send a2 1
		6 came a2:200:1
		7 closed 1       → close 1; a2 closed_early 200 bytes=1 first=1 total=2 reused`},
	{says: "a request sent again goes before what waits, within its own time",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 due a2
		900 answered a1  → send a2 1; a1 ok 200 first=898 total=898
		950 due a3
		1100 closed 1    → close 1; again; open 2 a2
		1101 opened 2    → send a2 2
		1900 passes      → close 2; open 3 a3; a2 timeout lag=897 connect=1 total=1000 queued own
		1901 opened 3    → send a3 3
		1902 answered a3 → a3 ok 200 lag=950 connect=1 first=2 total=2 queued own`},
	{says: "time-outs come in the order of the first attempts", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		100 due a2       → send a2 1
		200 due b1       → open 2 b1
		300 closed 1     → close 1; again; open 3 a2
		1150 passes      → close 3; a2 timeout connect=1000 total=1000
		1250 passes      → close 2; b1 timeout connect=1000 total=1000`},
	{says: "a request under way that takes too long ends with its connection, and who waits gets a new one",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		5 due a2
		7 came a1:206:99
		1002 passes      → close 1; open 2 a2; a1 timeout 206 bytes=99 first=5 total=1000`},
	{says: "what timed out while waiting is not sent in the place of what timed out with it",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1 a2      → open 1 a1
		2 opened 1       → send a1 1
		1002 passes      → a2 timeout lag=1000 queued own; close 1; a1 timeout total=1000`},
	{says: "a request that still waits at its time-out is not sent",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 due a2
		900 due a3
		950 answered a1  → send a2 1; a1 ok 200 first=948 total=948
		1900 passes      → a3 timeout lag=1000 queued own
		1910 answered a2 → a2 ok 200 lag=947 first=960 total=960 reused queued own`},
}

// runStory gives a pool one line after the other.
func runStory(t *testing.T, row story) {
	s := newScene(t, row.bounds.orLoose(), row.tls)
	for _, line := range strings.Split(strings.TrimSpace(row.lines), "\n") {
		given, want, _ := strings.Cut(line, "→")
		at, input, _ := strings.Cut(strings.TrimSpace(given), " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s.heard = nil
		s.until(ms * 1e6)
		s.give(input)
		s.check()
		s.until(s.now)
		if got := strings.Join(s.heard, "; "); got != strings.TrimSpace(want) {
			t.Errorf("at %s ms, %q does\n%s, not\n%s", at, input, got, strings.TrimSpace(want))
		}
	}
	s.finish()
}

func TestTheLifeOfARequest(t *testing.T) {
	for _, row := range slices.Concat(connections, caps, retries, multiplexed, endings) {
		t.Run(row.says, func(t *testing.T) { runStory(t, row) })
	}
}

func TestTheRecordOfARequest(t *testing.T) {
	s := newScene(t, Bounds{}.orLoose(), true)
	s.now = 10e6
	one := s.add("a1:POST:late")
	one.Route, one.LoggedStatus, one.LoggedBytes = 3, 404, -1
	for _, input := range []string{"passes", "opened 1", "came a1:201:77", "passes", "answered a1:201"} {
		s.until(s.now + 4e6)
		s.give(input)
	}
	want := record.Record{
		DueNS: 8e6, LagUS: 2000, LateUS: 2000, ConnectUS: 4000, TLSUS: 4000, TTFBUS: 12_000, TotalUS: 20_000,
		LoggedBytes: -1, Line: 1, Client: 'a', Route: 3, Status: 201, LoggedStatus: 404, Flags: record.TLS,
	}
	if s.last != want {
		t.Errorf("%+v, want\n%+v", s.last, want)
	}
	s.finish()
}
