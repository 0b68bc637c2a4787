package accesslog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// customFormats are what users write themselves.
var customFormats = []struct {
	why   string
	spec  Spec
	lines []string
	whole bool // lines are not broken: goaccess 1.7 crashes on them
}{
	{
		why:  "X-Forwarded-For between quotes, after the balancer's address that is not wanted",
		spec: Spec{Log: `"~h{, }" %^ %e [%d:%t %^] "%r" %s %b "%R" "%u" %D`, Date: "%d/%b/%Y", Time: "%T"},
		lines: []string{
			`"203.0.113.7, 198.51.100.2" 10.0.0.1 - [10/Oct/2025:13:05:36 +0000] "GET / HTTP/1.1" 200 512 "-" "curl" 1234`,
			`"203.0.113.9" 10.0.0.1 bob [10/Oct/2025:14:05:36 +0000] "PUT /x HTTP/1.1" 500 1 "http://a/" "curl" 0`,
		},
		whole: true,
	},
	{
		why:  "X-Forwarded-For that ends where its separators end",
		spec: Spec{Log: `~h{, } %e [%d:%t %^] "%r" %s %b`, Date: "%d/%b/%Y", Time: "%H:%M:%S"},
		lines: []string{
			`203.0.113.7, 198.51.100.2 - [10/Oct/2025:13:05:36 +0000] "GET / HTTP/1.1" 200 512`,
			`203.0.113.8 - [10/Oct/2025:13:05:36 +0000] "HEAD /y HTTP/1.1" 200 0`,
		},
	},
	{
		why:   "syslog's dates, whose days have a leading space",
		spec:  Spec{Log: `%d %t %v nginx: %h %r`, Date: "%b %d", Time: "%T"},
		lines: []string{`Jul  5 03:04:05 web1 nginx: 203.0.113.7 GET / HTTP/1.1`, `Nov 15 23:04:05 web1 nginx: 2001:db8::7 GET /x y HTTP/2.0`},
	},
	{
		why:  "brackets around the client, a port after them, and a path apart from its query",
		spec: Spec{Log: `%h:%^ %d %t %m %U %q %H %s %b %L`, Date: "%F", Time: "%H:%M:%S"},
		lines: []string{
			`[2001:db8::7]:4711 2025-10-10 01:02:03 GET /a b=c HTTP/1.1 200 77 12`,
			`192.0.2.1:99 2025-10-10 01:02:03 DELETE /a ?b=c HTTP/1.0 404 7 0`,
		},
	},
	{
		why:   "twelve hours and a weekday",
		spec:  Spec{Log: `%h|%d|%t|%r|%s|%b`, Date: "%a, %e %B %y", Time: "%I:%M:%S %p"},
		lines: []string{`192.0.2.1|Fri, 10 October 25|01:02:03 PM|GET / HTTP/1.1|200|-`, `192.0.2.1|Fri, 1 Oct 25|12:02:03 am|POST / HTTP/1.1|201|5`},
	},
	{
		why:   "milliseconds since the epoch",
		spec:  Spec{Log: `%x %h %^ "%r" %s %b`, Date: "%*", Time: "%*"},
		lines: []string{`1760100936123 192.0.2.1 - "GET / HTTP/1.1" 200 12`, `1760107936123 192.0.2.2 - "HEAD / HTTP/1.1" 200 0`},
	},
	{
		why: "JSON with nested names, arrays and numbers",
		spec: Spec{
			Log:  `{"at":"%d %t","client":{"ip":"%h","agents":["%u"]},"request":{"line":"%r"},"status":"%s","size":"%b"}`,
			Date: "%Y-%m-%d", Time: "%H:%M:%S",
		},
		lines: []string{
			`{"at":"2025-10-10 01:02:03","client":{"ip":"192.0.2.1","port":5,"agents":["a\"b","c"]},"request":{"line":"GET /x HTTP/1.1"},"status":200,"size":12,"ok":true,"none":null}`,
			`{"x":[1,[2,{"y":"z"}],[]],"at":"2025-10-10 04:02:03","client":{"ip":"192.0.2.2"},"request":{"line":"GET \u002f HTTP/2.0"},"status":"404","size":null}`,
		},
	},
	{
		why: "Caddy as goaccess 1.7 knows it",
		spec: Spec{
			Log:  `{ "ts": "%x.%^", "request": { "remote_ip": "%h", "proto":"%H", "method": "%m", "host": "%v", "uri": "%U", "headers": {"User-Agent": ["%u"], "Referer": ["%R"] }, "tls": { "cipher_suite":"%k", "proto": "%K" } }, "duration": "%T", "size": "%b","status": "%s", "resp_headers": { "Content-Type": ["%M"] } }`,
			Date: "%s", Time: "%s",
		},
		lines: []string{
			`{"level":"info","ts":1760100936.7564995,"request":{"remote_ip":"192.0.2.1","client_ip":"198.51.100.9","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/a?b=1","headers":{"User-Agent":["Mozilla/5.0 \"x\""],"Referer":["https://example.com/"]}},"duration":0.001504,"size":10900,"status":200,"resp_headers":{"Content-Type":["text/html"]}}`,
		},
	},
}

func TestGoaccessAgreesOnCustomFormats(t *testing.T) {
	needGoaccess(t)
	for i, c := range customFormats {
		t.Run(c.why, func(t *testing.T) {
			log := []byte(strings.Join(c.lines, "\n") + "\n")
			if !c.whole {
				log = nonsense(t, c.spec, c.lines, uint64(i))
			}
			compare(t, runOurs(t, c.spec, log), runGoaccess(t, c.spec, log))
			if t.Failed() {
				culprits(t, c.spec, log)
			}
		})
	}
}

// nonsense is a log of broken lines.
func nonsense(t *testing.T, spec Spec, lines []string, seed uint64) []byte {
	t.Helper()
	f, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, seed))
	var log []byte
	for range 3000 {
		line := mutate(rng, lines[rng.IntN(len(lines))])
		if reject := f.Parse([]byte(line), new(Request)); reject != nil && reject.Why == whyYear {
			continue // a year that goaccess believes
		}
		if strings.HasPrefix(line, fieldsPrefix) {
			continue // a comment to goaccess, broken names of fields here
		}
		log = append(append(log, line...), '\n')
	}
	return log
}

// mutate breaks a line in a few places, in ways that log lines break.
func mutate(rng *rand.Rand, line string) string {
	const odd = " \"\"[]:/-\\\t,.%+0159aZ\r;=?&\x80"
	b := []byte(line)
	for range rng.IntN(4) {
		if len(b) == 0 {
			break
		}
		at := rng.IntN(len(b))
		switch rng.IntN(6) {
		case 0:
			b = slices.Delete(b, at, at+1)
		case 1:
			b[at] = odd[rng.IntN(len(odd))]
		case 2:
			b = slices.Insert(b, at, odd[rng.IntN(len(odd))])
		case 3:
			end := min(len(b), at+rng.IntN(12))
			b = slices.Delete(b, at, end)
		case 4:
			end := min(len(b), at+rng.IntN(12))
			b = slices.Insert(b, at, slices.Clone(b[at:end])...)
		default:
			if rng.IntN(4) == 0 {
				b = b[:at]
			}
		}
	}
	// A negative size wraps around in goaccess; an hour that a leap second ends is the next one here; 1.7 refuses a
	// status 0 also in JSON.
	for _, no := range []string{" -0", " -1", " -5", " -9", " -2", " -3", " -4", " -6", " -7", " -8", "\"-", ":59:6", ":59:06", `"status":0`} {
		if strings.Contains(string(b), no) && !strings.Contains(line, no) {
			return line
		}
	}
	return string(b)
}

// culprits narrows a disagreement down to a few lines.
func culprits(t *testing.T, spec Spec, log []byte) {
	lines := slices.Collect(bytes.Lines(log))
	differ := func(part [][]byte) bool {
		text := bytes.Join(part, nil)
		ours, theirs := runOurs(t, spec, text), runGoaccess(t, spec, text)
		return fmt.Sprint(ours) != fmt.Sprint(theirs)
	}
	var search func(part [][]byte)
	found := 0
	search = func(part [][]byte) {
		if found > 4 || len(part) == 0 || !differ(part) {
			return
		}
		if len(part) == 1 {
			found++
			t.Logf("%q\nours     %v\ngoaccess %v", part[0], runOurs(t, spec, part[0]), runGoaccess(t, spec, part[0]))
			return
		}
		search(part[:len(part)/2])
		search(part[len(part)/2:])
	}
	search(lines)
}
