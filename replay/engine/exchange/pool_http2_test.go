package exchange

import "time"

var multiplexed = []story{
	{says: "over HTTP/2 many requests of a client share a connection", tls: true, lines: `
		2 due a1:h2 a2:h2 → open 1 a1
		12 opened 1:h2   → send a1 1; send a2 1
		13 due a3:h2     → send a3 1
		20 answered a2 a3 → a2 ok 200 lag=10 first=8 total=8 reused h2 tls queued; a3 ok 200 first=7 total=7 reused h2 tls
		22 answered a1   → a1 ok 200 connect=5 tls=5 first=20 total=20 h2 tls
		5021 passes
		5022 passes      → close 1`},
	{says: "as many as the server allows", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 allow 1:2
		4 due a2:h2 a3:h2 a4:h2 → send a2 1
		6 answered a1    → send a3 1; a1 ok 200 first=4 total=4 h2 tls
		7 allow 1:3      → send a4 1`},
	{says: "where it allows none, requests wait until it does", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 allow 1:0
		4 answered a1    → a1 ok 200 first=2 total=2 h2 tls
		5 due a2:h2
		9 allow 1:1      → send a2 1
		10 answered a2   → a2 ok 200 lag=4 first=1 total=1 reused h2 tls queued own`},
	{says: "a connection that may take nothing is closed for another client, and its own then waits for the cap",
		bounds: Bounds{MaxConnections: 1}, tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 allow 1:0
		4 answered a1    → a1 ok 200 first=2 total=2 h2 tls
		5 due a2:h2
		6 due b1:h2      → close 1; open 2 b1
		6 opened 2:h2    → send b1 2
		9 answered b1    → close 2; open 3 a2; b1 ok 200 first=3 total=3 h2 tls`},
	{says: "when such a connection was idle for too long, who waits for it gets a new one",
		bounds: Bounds{IdleTimeout: 100 * time.Millisecond}, tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 allow 1:0
		4 answered a1    → a1 ok 200 first=2 total=2 h2 tls
		5 due a2:h2
		104 passes       → close 1; open 2 a2`},
	{says: "a connection that the server is to end finishes what it has, while the client uses another", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 leaving 1
		4 due a2:h2      → open 2 a2
		5 allow 1:50
		6 answered a1    → close 1; a1 ok 200 first=4 total=4 h2 tls
		8 opened 2:h2    → send a2 2
		9 answered a2    → a2 ok 200 connect=2 tls=2 first=5 total=5 h2 tls
		10 leaving 2     → close 2`},
	{says: "a client whose only connection is to end waits for the cap among the others",
		bounds: Bounds{MaxConnections: 2}, tls: true, lines: `
		2 due a1:h2 b1:h2 → open 1 a1; open 2 b1
		2 opened 1:h2 2:h2 → send a1 1; send b1 2
		3 allow 1:1
		4 due a2:h2
		5 leaving 1
		6 due c1:h2
		7 answered b1    → close 2; open 3 a2; b1 ok 200 first=5 total=5 h2 tls
		8 answered a1    → close 1; open 4 c1; a1 ok 200 first=6 total=6 h2 tls`},
	{says: "what the server has not looked at is sent again, whatever its method", tls: true, lines: `
		2 due a1:h2 a2:h2:POST → open 1 a1
		2 opened 1:h2    → send a1 1; send a2 1
		3 leaving 1
		3 unheard a2     → again; open 2 a2
		4 answered a1    → close 1; a1 ok 200 first=2 total=2 h2 tls
		5 opened 2:h2    → send a2 2
		6 answered a2    → a2 ok 200 connect=1 tls=1 first=4 total=4 h2 tls queued`},
	{says: "but once only", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		4 opened 1:h2    → send a1 1
		5 unheard a1     → again; send a1 1
		6 unheard a1     → a1 h2_refused total=4 reused h2 tls`},
	{says: "a stream that fails or takes too long leaves the others alone", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 due a2:h2 a3:h2 → send a2 1; send a3 1
		4 came a2:200:5
		5 failed a2      → a2 bad_response 200 bytes=5 first=1 total=2 reused h2 tls
		6 came a1:200:9
		1002 passes      → cancel a1; a1 timeout 200 bytes=9 first=4 total=1000 h2 tls
		1002 answered a3 → a3 ok 200 first=999 total=999 reused h2 tls`},
	{says: "when a connection ends, each of its requests ends as it would alone", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		2 opened 1:h2    → send a1 1
		3 due a2:h2 a3:h2:POST a4:h2 → send a2 1; send a3 1; send a4 1
		4 came a4:200:5
		5 closed 1       → close 1; a1 closed_early total=3 h2 tls; again; open 2 a2; a3 closed_early total=2 reused h2 tls; a4 closed_early 200 bytes=5 first=1 total=2 reused h2 tls
		6 opened 2:h2    → send a2 2
		7 answered a2    → a2 ok 200 first=4 total=4 h2 tls`},
	{says: "a server that chooses HTTP/1.1 gets it, over as many connections as that takes", tls: true, lines: `
		2 due a1:h2 a2:h2 a3:h2 → open 1 a1
		4 opened 1       → send a1 1; open 2 a2; open 3 a3
		5 due a4:h2:absolute → open 4 a4
		6 answered a1    → a1 ok 200 connect=1 tls=1 first=4 total=4 tls`},
	{says: "a target that HTTP/2 cannot carry is skipped", tls: true, lines: `
		2 due a1:h2:absolute → a1 skipped: unsendable_h2
		3 due a2:absolute → open 1 a2`},
	{says: "without TLS there is no HTTP/2", lines: `
		2 due a1:h2:absolute a2:h2 → open 1 a1; open 2 a2`},
	{says: "a time-out while connecting says that it would have been TLS", tls: true, lines: `
		2 due a1:h2      → open 1 a1
		1002 passes      → close 1; a1 timeout connect=1000 total=1000 tls`},
}

var endings = []story{
	{says: "after a stop, what is under way finishes, what waits or is due is not sent",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1 b1      → open 1 a1; open 2 b1
		2 opened 1       → send a1 1
		3 due a2
		4 stop
		5 due c1
		6 opened 2       → send b1 2
		7 answered a1 b1 → close 1; a1 ok 200 first=5 total=5; close 2; b1 ok 200 connect=4 first=5 total=5`},
	{says: "nor is anything sent again after it", lines: `
		2 due a1         → open 1 a1
		2 opened 1       → send a1 1
		3 answered a1    → a1 ok 200 first=1 total=1
		5 due a2         → send a2 1
		6 stop
		7 closed 1       → close 1`},
	{says: "given up: what was under way is aborted, with what had come",
		bounds: Bounds{PerClient: 1}, lines: `
		2 due a1 b1      → open 1 a1; open 2 b1
		2 opened 1       → send a1 1
		3 due a2
		4 came a1:200:8
		9 abort          → close 1; a1 aborted 200 bytes=8 first=2 total=7; close 2; b1 aborted connect=7 total=7`},
	{says: "given up over HTTP/2", tls: true, lines: `
		2 due a1:h2 a2:h2 → open 1 a1
		2 opened 1:h2    → send a1 1; send a2 1
		9 abort          → cancel a1; a1 aborted total=7 h2 tls; cancel a2; close 1; a2 aborted total=7 reused h2 tls queued`},
	{says: "the connections of a client that does not come back are closed", lines: `
		2 due a1 a2:leaves → open 1 a1; open 2 a2
		2 opened 1 2     → send a1 1; send a2 2
		3 answered a1    → a1 ok 200 first=1 total=1
		4 answered a2    → a2 ok 200 first=2 total=2; close 1; close 2`},
}
