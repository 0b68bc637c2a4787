package accesslog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog/formats"
)

func mustCompile(t testing.TB, spec Spec) *Format {
	t.Helper()
	f, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryPresetReadsItsSample(t *testing.T) {
	tested := map[string]bool{}
	for _, s := range samples {
		t.Run(s.preset, func(t *testing.T) {
			tested[s.preset] = true
			f := mustCompile(t, Spec{Log: strings.ToLower(s.preset)})
			valid, failed := 0, 0
			for _, line := range s.lines {
				if Ignored([]byte(line)) {
					continue
				}
				if f.Parse([]byte(line), new(Request)) == nil {
					valid++
				} else {
					failed++
				}
			}
			if valid != s.valid || failed != s.failed {
				t.Errorf("%s: %d valid and %d failed, want %d and %d", s.why, valid, failed, s.valid, s.failed)
			}
			if f.Name() != s.preset {
				t.Errorf("its name is %q", f.Name())
			}
		})
	}
	for _, name := range Presets() {
		if !tested[name] {
			t.Errorf("%s has no sample", name)
		}
	}
}

// fieldsOf writes a request down, to compare it.
func fieldsOf(r *Request) string {
	var b strings.Builder
	for _, f := range [][]byte{r.Host, r.VHost, r.Method, r.Target, r.Protocol, r.Referer, r.UserAgent} {
		if f == nil {
			b.WriteString("∅ ")
			continue
		}
		b.WriteString("<" + string(f) + "> ")
	}
	return strings.TrimSpace(b.String())
}

var parsed = []struct {
	why      string
	spec     Spec
	line     string
	fields   string // host, vhost, method, target, protocol, referer, user agent
	at       string // RFC 3339, UTC
	status   uint16
	bytes    int64
	duration int64 // ns
}{
	{
		why: "a plain line", spec: Spec{Log: "COMBINED"},
		line:   `192.0.2.7 - - [10/Oct/2025:13:55:36 +0200] "GET /a?b=%20+c HTTP/1.1" 200 12 "http://x/" "UA"`,
		fields: `<192.0.2.7> ∅ <GET> </a?b=%20+c> <HTTP/1.1> <http://x/> <UA>`,
		at:     "2025-10-10T11:55:36Z", status: 200, bytes: 12, duration: -1,
	},
	{
		why: "the target keeps its spaces, escapes and quotes; the method keeps its case", spec: Spec{Log: "COMBINED"},
		line:   `192.0.2.7 - - [10/Oct/2025:13:55:36 -0030] "get /a b\"c\x22 HTTP/2.0" 200 - "-" "-"`,
		fields: `<192.0.2.7> ∅ <get> </a b\"c\x22> <HTTP/2> ∅ ∅`,
		at:     "2025-10-10T14:25:36Z", status: 200, bytes: 0, duration: -1,
	},
	{
		why: "a request line that is none is all target", spec: Spec{Log: "COMBINED"},
		line:   `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "\x16\x03" 400 0 "-" "-"`,
		fields: `<192.0.2.7> ∅ ∅ <\x16\x03> ∅ ∅ ∅`,
		at:     "2025-10-10T13:55:36Z", status: 400, duration: -1,
	},
	{
		why: "an IPv6 address as host is whole, with a port behind it", spec: Spec{Log: "VCOMBINED"},
		line:   `[2001:db8::1]:80 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 7 "-" "UA"`,
		fields: `<192.0.2.7> <[2001:db8::1]> <GET> </> <HTTP/1.1> ∅ <UA>`,
		at:     "2025-10-10T13:55:36Z", status: 200, bytes: 7, duration: -1,
	},
	{
		why: "and keeps the port that is in its field", spec: Spec{Log: `%h "%v" [%d:%t %^] "%r"`, Date: "%d/%b/%Y", Time: "%T"},
		line:   `192.0.2.7 "[2001:db8::1]:80" [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1"`,
		fields: `<192.0.2.7> <[2001:db8::1]:80> <GET> </> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T13:55:36Z", bytes: -1, duration: -1,
	},
	{
		why: "CloudFront's visitors ask for x-host-header", spec: Spec{Log: "CLOUDFRONT"},
		line: "2025-10-10\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111.cloudfront.net\t/a\t200\t-\tUA\t-\t-\tHit\tSOX4x\t" +
			"www.example.com\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE\tHit\tHTTP/2.0\t-\t-",
		fields: `<192.0.2.100> <www.example.com> <GET> </a> <HTTP/2> ∅ <UA>`,
		at:     "2025-10-10T21:02:31Z", status: 200, bytes: 392, duration: 1e6,
	},
	{
		why: "what is no address ends where goaccess ends it", spec: Spec{Log: "VCOMBINED"},
		line:   `[x:80 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 7 "-" "UA"`,
		fields: `<192.0.2.7> <[x> <GET> </> <HTTP/1.1> ∅ <UA>`,
		at:     "2025-10-10T13:55:36Z", status: 200, bytes: 7, duration: -1,
	},
	{
		why: "a method without a protocol is all target too", spec: Spec{Log: "COMBINED"},
		line:   `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /old" 200 0 "-" "-"`,
		fields: `<192.0.2.7> ∅ ∅ <GET /old> ∅ ∅ ∅`,
		at:     "2025-10-10T13:55:36Z", status: 200, duration: -1,
	},
	{
		why: "CONNECT and absolute targets stay as they are", spec: Spec{Log: "COMBINED"},
		line:   `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "CONNECT mail.example.com:25 HTTP/1.1" 405 0 "-" "-"`,
		fields: `<192.0.2.7> ∅ <CONNECT> <mail.example.com:25> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T13:55:36Z", status: 405, duration: -1,
	},
	{
		why: "a carriage return at the end is white space", spec: Spec{Log: "COMMON"},
		line:   `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 7` + "\r",
		fields: `<192.0.2.7> ∅ <GET> </> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T13:55:36Z", status: 200, bytes: 7, duration: -1,
	},
	{
		why: "IIS: path and query are joined, a dash is no query, durations are ms", spec: Spec{Log: "W3C"},
		line:   `2025-10-10 00:32:17 192.0.2.1 GET /news.aspx id=7 80 - 198.51.100.2 Mozilla/5.0+(x) - 200 0 0 203`,
		fields: `<198.51.100.2> ∅ <GET> </news.aspx?id=7> ∅ ∅ <Mozilla/5.0+(x)>`,
		at:     "2025-10-10T00:32:17Z", status: 200, bytes: -1, duration: 203e6,
	},
	{
		why: "IIS: times in a zone that the user names", spec: Spec{Log: "W3C", TZ: "America/New_York"},
		line:   `2025-07-10 00:32:17 192.0.2.1 GET /x - 80 - 198.51.100.2 Bot - 200 0 0 -`,
		fields: `<198.51.100.2> ∅ <GET> </x> ∅ ∅ <Bot>`,
		at:     "2025-07-10T04:32:17Z", status: 200, bytes: -1, duration: -1,
	},
	{
		why: "a balancer's time has a fraction, its target a host, and its name is no virtual host", spec: Spec{Log: "AWSALB"},
		line:   sampleOf("AWSALB").lines[0],
		fields: `<192.0.2.131> ∅ <GET> <http://www.example.com:80/> <HTTP/1.1> ∅ <curl/8.5.0>`,
		at:     "2025-10-10T23:39:43.945958Z", status: 200, bytes: 366, duration: 1e6,
	},
	{
		why: "Caddy: the client behind the proxy, microseconds, an escaped user agent", spec: Spec{Log: "CADDY"},
		line:   sampleOf("CADDY").lines[0],
		fields: `<198.51.100.9> <www.example.com> <GET> </a?b=1> <HTTP/2> <https://example.com/> <Mozilla/5.0 "x">`,
		at:     "2025-10-10T12:55:36.7564995Z", status: 200, bytes: 10900, duration: 1504e3,
	},
	{
		why: "Caddy: without client_ip the peer is the client; short times have exponents", spec: Spec{Log: "CADDY"},
		line:   sampleOf("CADDY").lines[1],
		fields: `<192.0.2.1> <www.example.com> <HEAD> </> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T12:55:37.1Z", status: 404, duration: 15000,
	},
	{
		why: "native Squid: milliseconds, runs of spaces", spec: Spec{Log: `%x %~%L %h %^/%s %b %m %U %^`},
		line:   `1760100936.779    180 192.0.2.224 TCP_MISS/200 411 GET http://example.com/m - DIRECT/198.51.100.203 text/html`,
		fields: `<192.0.2.224> ∅ <GET> <http://example.com/m> ∅ ∅ ∅`,
		at:     "2025-10-10T12:55:36.779Z", status: 200, bytes: 411, duration: 180e6,
	},
	{
		why: "nginx with an ISO time, a host and its time in seconds", spec: Spec{Log: `%h %v [%x] "%r" %s %b %T`},
		line:   `2001:db8::1 www.example.com [2025-10-10T13:55:36+02:00] "GET / HTTP/1.1" 200 5 0.250`,
		fields: `<2001:db8::1> <www.example.com> <GET> </> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T11:55:36Z", status: 200, bytes: 5, duration: 250e6,
	},
	{
		why: "Apache's %t as one field, its duration in microseconds", spec: Spec{Log: `%h [%x] "%r" %s %b %D`},
		line:   `client.example.net [10/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 200 5 1234`,
		fields: `<client.example.net> ∅ <GET> </> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T11:55:36Z", status: 200, bytes: 5, duration: 1234e3,
	},
	{
		why: "a later %b is taken where the first is 0, and a repeated %s is skipped", spec: Spec{Log: `%h %x %U %b %b %s %s %m`},
		line:   `192.0.2.1 1760100936 /x 0 9 200 404 GET`,
		fields: `<192.0.2.1> ∅ <GET> </x> ∅ ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", status: 200, bytes: 9, duration: -1,
	},
	{
		why: "the first valid address of X-Forwarded-For", spec: Spec{Log: `"~h{, }" %x %U`},
		line:   `"unknown, 203.0.113.7, 10.0.0.1" 1760100936 /x`,
		fields: `<203.0.113.7> ∅ ∅ </x> ∅ ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", bytes: -1, duration: -1,
	},
	{
		why: "brackets come off an address, and nothing else is lost", spec: Spec{Log: `%h:%^ %x %U`},
		line:   `[2001:db8::7]:4711 1760100936 /x`,
		fields: `<2001:db8::7> ∅ ∅ </x> ∅ ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", bytes: -1, duration: -1,
	},
	{
		why: "a date and a time format of the user's, with an offset in the time", spec: Spec{Log: `%d %t|%h %U`, Date: "%Y%m%d", Time: "%H%M%S%z"},
		line:   `20251010 135536+0200|192.0.2.1 /x`,
		fields: `<192.0.2.1> ∅ ∅ </x> ∅ ∅ ∅`,
		at:     "2025-10-10T11:55:36Z", bytes: -1, duration: -1,
	},
	{
		why: "nginx's times of several upstreams, one group after the other, are added up", spec: Spec{Log: `%h [%x] "%r" %T %s`},
		line:   `192.0.2.1 [1760100936] "GET /x HTTP/1.1" 0.100, 0.200 : - : 0.004 200`,
		fields: `<192.0.2.1> ∅ <GET> </x> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", status: 200, bytes: -1, duration: 304_000_000,
	},
	{
		why: "also in quotes at the end", spec: Spec{Log: `%h [%x] "%r" %s "%T"`},
		line:   `192.0.2.1 [1760100936] "GET /x HTTP/1.1" 200 "0.1 : 0.2"`,
		fields: `<192.0.2.1> ∅ <GET> </x> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", status: 200, bytes: -1, duration: 300_000_000,
	},
	{
		why: "what follows a time is no second one", spec: Spec{Log: `%h [%x] "%r" %s %T`},
		line:   `192.0.2.1 [1760100936] "GET /x HTTP/1.1" 200 0.1 0.2`,
		fields: `<192.0.2.1> ∅ <GET> </x> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", status: 200, bytes: -1, duration: 100_000_000,
	},
	{
		why: "Apache's %{ms}T is milliseconds", spec: Spec{Log: `%h [%x] "%r" %s %{ms}T`},
		line:   `192.0.2.1 [1760100936] "GET /x HTTP/1.1" 200 12`,
		fields: `<192.0.2.1> ∅ <GET> </x> <HTTP/1.1> ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", status: 200, bytes: -1, duration: 12_000_000,
	},
	{
		why: "HAProxy's plus sign: it logged before the response had ended", spec: Spec{Log: haproxy},
		line:   `192.0.2.1:33317 [25/Nov/2026:10:00:00.655] http-in static/srv1 10/0/30/69/+109 200 +2750 - - ---- 1/1/1/1/0 0/0 {a|b} "GET /p0 HTTP/1.1"`,
		fields: `<192.0.2.1> ∅ <GET> </p0> <HTTP/1.1> ∅ ∅`,
		at:     "2026-11-25T10:00:00.655Z", status: 200, bytes: 2750, duration: 109_000_000,
	},
	{
		why: "a zero byte ends the line, as in goaccess", spec: Spec{Log: `%h %x %U %s`},
		line:   "192.0.2.1 1760100936 /x 200\x00 garbage",
		fields: `<192.0.2.1> ∅ ∅ </x> ∅ ∅ ∅`,
		at:     "2025-10-10T12:55:36Z", status: 200, bytes: -1, duration: -1,
	},
}

func TestParse(t *testing.T) {
	for _, c := range parsed {
		t.Run(c.why, func(t *testing.T) {
			f := mustCompile(t, c.spec)
			var r Request
			if reject := f.Parse([]byte(c.line), &r); reject != nil {
				t.Fatal(reject)
			}
			if got := fieldsOf(&r); got != c.fields {
				t.Errorf("fields\n%s, want\n%s", got, c.fields)
			}
			if got := time.Unix(0, r.TimeNS).UTC().Format(time.RFC3339Nano); got != c.at {
				t.Errorf("time %s, want %s", got, c.at)
			}
			if r.Status != c.status || r.Bytes != c.bytes || r.DurationNS != c.duration {
				t.Errorf("status %d, bytes %d, duration %d ns; want %d, %d, %d",
					r.Status, r.Bytes, r.DurationNS, c.status, c.bytes, c.duration)
			}
		})
	}
}

func TestRejectsSayWhereAndWhy(t *testing.T) {
	for _, c := range []struct{ why, log, line, want string }{
		{"the date", "COMMON", `192.0.2.7 - - [99/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 7`, `%d at column 16 does not match the date format %d/%b/%Y: "99/Oct/2025"`},
		{"the time", "COMMON", `192.0.2.7 - - [10/Oct/2025:25:55:36 +0000] "GET / HTTP/1.1" 200 7`, `%t at column 28 does not match the time format %H:%M:%S: "25:55:36"`},
		{"the status", "COMMON", `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 99 7`, `%s at column 61 is not an HTTP status (100 to 599): "99"`},
		{"no delimiter", "COMMON", `192.0.2.7`, `%h at column 1 has no end: the delimiter that follows it in the format is missing: "192.0.2.7"`},
		{"no request", "COMMON", `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000]`, `%r at column 43 is missing: a line needs a request`},
		{"a year of nonsense", "COMMON", `192.0.2.7 - - [10/Oct/0025:13:55:36 +0000] "GET / HTTP/1.1" 200 7`, `%d at column 1 is before 1970 or after 2261: no server logged that`},
		{"what could harm a terminal is quoted", "COMMON", "192.0.2.7 - - [\x1b[31m:1 \u202e", `%d at column 16 does not match the date format %d/%b/%Y: "\x1b[31m"`},
		{"half a JSON object", "CADDY", `{"ts":1.5,`, `{ at column 11 is not JSON: a name in quotes was expected`},
		{"a status in JSON", "CADDY", `{"ts":1.5,"status":"x"}`, `%s at column 21 is not an HTTP status (100 to 599): "x"`},
	} {
		t.Run(c.why, func(t *testing.T) {
			reject := mustCompile(t, Spec{Log: c.log}).Parse([]byte(c.line), new(Request))
			if reject == nil || reject.Error() != c.want {
				t.Errorf("got  %v\nwant %s", reject, c.want)
			}
		})
	}
}

func TestStrictHosts(t *testing.T) {
	const line = `%s - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 7`
	for host, strict := range map[string]bool{
		"192.0.2.7": true, "2001:db8::7": true, "client.example.net": false, "192.0.2.07": false, "fe80::1%eth0": false, "1.2.3": false, "-": false,
	} {
		text := []byte(strings.Replace(line, "%s", host, 1))
		if reject := mustCompile(t, Spec{Log: "COMMON"}).Parse(text, new(Request)); reject != nil {
			t.Errorf("%s: %v", host, reject)
		}
		reject := mustCompile(t, Spec{Log: "COMMON", StrictHosts: true}).Parse(text, new(Request))
		if (reject == nil) != strict {
			t.Errorf("%s, strict: %v", host, reject)
		}
	}
}

func TestCompileNamesAllMistakesAtOnce(t *testing.T) {
	for _, c := range []struct {
		why  string
		spec Spec
		want []string
	}{
		{"nothing", Spec{}, []string{"it is empty: give a preset (AWSALB, "}},
		{"a name that is not a preset", Spec{Log: "apache"}, []string{"neither a preset (AWSALB, AWSELB, "}},
		{"a preset with a typo", Spec{Log: "combinde"}, []string{"it is not a preset: did you mean COMBINED?"}},
		{"one of two that are alike", Spec{Log: "VCOMMN"}, []string{"did you mean VCOMMON?"}},
		{
			"specifiers that are none, each with its column", Spec{Log: "%h %d %a %r %G %"},
			[]string{"column 7: %a is not a specifier", "column 13: %G is not a specifier", "column 16: it ends in a %"},
		},
		{"what is required", Spec{Log: "%s"}, []string{"it has no %h", "it has no %d or %x", "it has no %r or %U"}},
		{"X-Forwarded-For without separators", Spec{Log: "~h %d %r"}, []string{"column 1: ~h needs the characters", "~h{, }"}},
		{"a date format", Spec{Log: "COMMON", Date: "%d/%Q"}, []string{"%Q at column 4", "not a supported date or time conversion"}},
		{"a zone", Spec{Log: "COMMON", TZ: "Mars/Olympus"}, []string{`"Mars/Olympus"`, "Europe/Berlin"}},
		{"JSON that is none", Spec{Log: `{"a": "%h"`}, []string{"is not JSON: a comma or } was expected"}},
		{"a specifier in JSON", Spec{Log: `{"a": "%h %Q", "b":"%x", "c":"%r"}`}, []string{"%Q is not a specifier"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			_, err := Compile(c.spec)
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

// haproxy is HAProxy's log of HTTP, without syslog before it.
const haproxy = `%h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`

func TestWhatTimestampsMean(t *testing.T) {
	for _, c := range []struct {
		log        string
		at         formats.LogTime
		resolution time.Duration
		escape     formats.Escape
	}{
		{"COMBINED", formats.Received, time.Second, formats.EscapeBackslash},
		{"awss3", formats.Received, time.Second, formats.EscapeNone},
		{"TRAEFIKCLF", formats.Received, time.Second, formats.EscapeBackslash},
		{"CADDY", formats.Finished, time.Microsecond, formats.EscapeNone},
		{"CLOUDFRONT", formats.Finished, time.Second, formats.EscapePercent},
		{"AWSALB", formats.Finished, time.Microsecond, formats.EscapeBackslash},
		{"SQUID", formats.Finished, time.Millisecond, formats.EscapeNone},
		{"W3C", formats.Finished, time.Second, formats.EscapePlus},
		{"CLOUDSTORAGE", formats.Finished, time.Microsecond, formats.EscapeNone},
		{`%h [%d:%t %^] "%r" %D`, formats.Received, time.Second, formats.EscapeBackslash},
		{`%h [%d:%t %^] "%r" %T`, formats.Finished, time.Second, formats.EscapeBackslash},
		{`%h [%d:%t %^] "%r" %L`, formats.Finished, time.Second, formats.EscapeBackslash},
		{`%h [%d:%t %^] "%r" %{ms}T`, formats.Received, time.Second, formats.EscapeBackslash},
		{`%h [%d:%t %^] "%r" %{us}T %{s}T`, formats.Received, time.Second, formats.EscapeBackslash},
		{haproxy, formats.Received, time.Millisecond, formats.EscapeBackslash},
		{`%h - %e [%d:%t %^] "%r" %s %b "%R" "%u" %^ "%^" "%^" %Lms`, formats.Received, time.Second, formats.EscapeBackslash},
		{`{"StartUTC":"%x","ClientHost":"%h","RequestPath":"%U","Duration":"%n"}`, formats.Received, time.Millisecond, formats.EscapeNone},
		{`{"start_time":"%x","from":"%h","path":"%U","duration":"%L"}`, formats.Received, time.Millisecond, formats.EscapeNone},
		{`%h [%x] "%r"`, formats.Received, time.Millisecond, formats.EscapeBackslash},
		{`{"t":"%x","h":"%h","r":"%r"}`, formats.Finished, time.Millisecond, formats.EscapeNone},
	} {
		f := mustCompile(t, Spec{Log: c.log})
		if f.LogTime() != c.at || f.Resolution() != c.resolution || f.Escape() != c.escape {
			t.Errorf("%s: %v, %v, escape %d; want %v, %v, %d",
				c.log, f.LogTime(), f.Resolution(), f.Escape(), c.at, c.resolution, c.escape)
		}
	}
	if got := mustCompile(t, Spec{Log: "W3C"}).TargetEscape(); got != formats.EscapeNone {
		t.Errorf("a plus sign in IIS's path is no space: %v", got)
	}
}

func TestPresetsAreSorted(t *testing.T) {
	if !slices.IsSorted(Presets()) || len(Presets()) != len(formats.Named) {
		t.Error(Presets())
	}
}

func TestUnescape(t *testing.T) {
	for _, c := range []struct {
		why     string
		style   formats.Escape
		in, out string
	}{
		{"Apache escapes quotes, backslashes and control characters", formats.EscapeBackslash, `a\"b\\c\n\t\r\x1b`, "a\"b\\c\n\t\r\x1b"},
		{"nginx escapes all of them as hex", formats.EscapeBackslash, `\x22\x5C\xC3\xA9`, "\"\\é"},
		{"Traefik is written in Go", formats.EscapeBackslash, `\u00e9`, "é"},
		{"what is no escape stays", formats.EscapeBackslash, `C:\dir\xZZ\u12 \`, `C:\dir\xZZ\u12 \`},
		{"a plus sign is a space to IIS", formats.EscapePlus, "Mozilla/5.0+(Windows+NT)", "Mozilla/5.0 (Windows NT)"},
		{"CloudFront escapes as in URLs", formats.EscapePercent, "Mozilla/5.0%20(X)%", "Mozilla/5.0 (X)%"},
		{"CloudFront escapes some fields twice", formats.EscapePercent, "a%2520b", "a b"},
		{"HAProxy escapes quotes and hashes", formats.EscapeHash, "/a?b=#22#23#zz#2", `/a?b="##zz#2`},
		{"nothing was escaped", formats.EscapeNone, `\x22+%20`, `\x22+%20`},
	} {
		if got := string(Unescape([]byte("+"), []byte(c.in), c.style)); got != "+"+c.out {
			t.Errorf("%s: %q, want %q", c.why, got, "+"+c.out)
		}
	}
}
