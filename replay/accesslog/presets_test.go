package accesslog

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog/formats"
)

// TestLogsAreReadWithoutAFlag: logs of the documented forms of servers, balancers and networks.
func TestLogsAreReadWithoutAFlag(t *testing.T) {
	const combined = `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /p HTTP/1.1" 200 12 "-" "UA"`
	for _, row := range []struct{ says, log, format, want string }{
		{
			"HAProxy", `192.0.2.1:33317 [25/Nov/2025:10:00:00.655] in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /a HTTP/1.1"`,
			"HAPROXY", "2025-11-25T10:00:00.655Z 192.0.2.1  GET /a 200 2750 109ms",
		},
		{
			"HAProxy with captured header fields", `192.0.2.1:33317 [25/Nov/2025:10:00:00.655] in~ static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {h|Mozilla/5.0 (X11)} {|} "GET /a HTTP/1.1"`,
			"HAPROXY", "2025-11-25T10:00:00.655Z 192.0.2.1  GET /a 200 2750 109ms",
		},
		{
			"HAProxy behind syslog, with IPv6", `Nov 25 10:00:00 lb haproxy[42]: ::ffff:192.0.2.1:33317 [25/Nov/2025:10:00:00.655] in~ in/<NOSRV> 0/-1/-1/-1/0 503 213 - - SC-- 1/1/1/1/0 0/0 "GET /a HTTP/1.1"`,
			"", "2025-11-25T10:00:00.655Z ::ffff:192.0.2.1  GET /a 503 213 0s",
		},
		{
			"HAProxy's option httpslog", `192.0.2.1:61818 [27/Jan/2025:21:52:56.086] in s/s1 0/0/1/1/2 200 517 - - ---- 1/1/0/0/0 0/0 {h} {} "GET /a HTTP/1.1" 0/0/0/0/0 h/TLSv1.3/TLS_AES_256_GCM_SHA384`,
			"HAPROXY", "2025-01-27T21:52:56.086Z 192.0.2.1  GET /a 200 517 2ms",
		},
		{
			"HAProxy's option httplog clf", `192.0.2.1 - - [25/Nov/2025:10:00:00 +0100] "GET /a HTTP/1.1" 200 2750 "" "" 33317 655 "in" "static" "srv1" 10 0 30 69 109 "----" 1 1 1 1 0 0 0 "" ""`,
			"HAPROXYCLF", "2025-11-25T09:00:00Z 192.0.2.1  GET /a 200 2750 109ms",
		},
		{
			"Nginx Proxy Manager", `[25/Nov/2025:10:00:00 +0000] - 200 200 - GET https www.example.com "/a?b=1" [Client 192.0.2.1] [Length 1543] [Gzip 2.45] [Sent-to 10.0.0.15] "UA" "-"`,
			"NPM", "2025-11-25T10:00:00Z 192.0.2.1 www.example.com GET /a?b=1 200 1543 -1ns",
		},
		{
			"Nginx Proxy Manager, a host that it forwards nowhere", `[25/Nov/2025:10:00:00 +0000] 404 - GET https www.example.com "/a" [Client 192.0.2.1] [Length 169] [Gzip -] "UA" "-"`,
			"NPMSTANDARD", "2025-11-25T10:00:00Z 192.0.2.1 www.example.com GET /a 404 169 -1ns",
		},
		{"LiteSpeed", `"` + combined + `"`, "", "2025-10-10T13:55:36Z 192.0.2.7  GET /p 200 12 -1ns"},
		{
			"Traefik's JSON", `{"ClientAddr":"192.0.2.1:5","ClientHost":"192.0.2.1","DownstreamContentSize":15,"DownstreamStatus":"200","Duration":10002425284,"RequestHost":"www.example.com","RequestMethod":"GET","RequestPath":"/a","StartLocal":"2025-11-25T11:00:00.7+01:00","StartUTC":"2025-11-25T10:00:00.7Z"}`,
			"TRAEFIK", "2025-11-25T10:00:00.7Z 192.0.2.1 www.example.com GET /a 200 15 10.002425284s",
		},
		{
			"Traefik's JSON behind a proxy", `{"ClientAddr":"10.0.0.1:5","ClientHost":"192.0.2.1, 10.0.0.2","DownstreamStatus":200,"RequestMethod":"GET","RequestPath":"/a","StartLocal":"2025-11-25T11:00:00.7+01:00"}`,
			"TRAEFIK", "2025-11-25T10:00:00.7Z 192.0.2.1  GET /a 200 -1 -1ns",
		},
		{
			"Cloudflare's Logpush, in nanoseconds", `{"ClientIP":"192.0.2.1","ClientRequestHost":"www.example.com","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeResponseBytes":15,"EdgeResponseStatus":200,"EdgeStartTimestamp":1760100936433000200}`,
			"CLOUDFLARE", "2025-10-10T12:55:36.4330002Z 192.0.2.1 www.example.com GET /a 200 15 -1ns",
		},
		{
			"Cloudflare's Logpush, RFC 3339", `{"ClientIP":"192.0.2.1","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeResponseBytes":15,"EdgeResponseStatus":200,"EdgeStartTimestamp":"2025-10-10T12:55:36Z"}`,
			"CLOUDFLARE", "2025-10-10T12:55:36Z 192.0.2.1  GET /a 200 15 -1ns",
		},
		{
			"Cloudflare's Logpush, in seconds, as texts", `{"ClientIP":"192.0.2.1","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeResponseBytes":15,"EdgeResponseStatus":200,"EdgeStartTimestamp":"1760100936"}`,
			"CLOUDFLARE", "2025-10-10T12:55:36Z 192.0.2.1  GET /a 200 15 -1ns",
		},
		{
			"Fastly", `{"timestamp":"2025-10-10T12:55:36+0000","client_ip":"192.0.2.1","host":"www.example.com","url":"/a","request_method":"GET","request_protocol":"HTTP/2","response_status":200,"response_body_size":15}`,
			"FASTLY", "2025-10-10T12:55:36Z 192.0.2.1 www.example.com GET /a 200 15 -1ns",
		},
		{
			"Bunny", `HIT|200|1760100936421|412|390|192.0.2.1|-|https://cdn.example.com/a.gif|WA|UA (X11; Linux)|322b|DE`,
			"BUNNY", "2025-10-10T12:55:36.421Z 192.0.2.1   https://cdn.example.com/a.gif 200 412 -1ns",
		},
		{
			"Gandi", `www.example.com 192.0.2.1 - joe [10/Oct/2025:13:55:36 +0000] (2 s) "GET /a HTTP/1.1" 200 12 "-" "UA"`,
			"%v %h %^ %e [", "2025-10-10T13:55:36Z 192.0.2.1 www.example.com GET /a 200 12 2s",
		},
		{
			"OVH", `192.0.2.1 www.example.com joe [10/Oct/2025:13:55:36 +0000] "GET /a HTTP/1.1" 200 12 "-" "UA"`,
			"%h %v %e [", "2025-10-10T13:55:36Z 192.0.2.1 www.example.com GET /a 200 12 -1ns",
		},
		{
			"a virtual host without a port", "www.example.com " + combined,
			"%v %h %^[", "2025-10-10T13:55:36Z 192.0.2.7 www.example.com GET /p 200 12 -1ns",
		},
		{
			"a virtual host without a port, and no agent", "www.example.com " + strings.TrimSuffix(combined, ` "-" "UA"`),
			"%v %h %^[", "2025-10-10T13:55:36Z 192.0.2.7 www.example.com GET /p 200 12 -1ns",
		},
		{
			"Squid's own log", `1760100936.779    180 192.0.2.224 TCP_MISS/200 411 GET http://www.example.com/m - DIRECT/1.2.3.4 -`,
			"%x %~%L", "2025-10-10T12:55:36.779Z 192.0.2.224  GET http://www.example.com/m 200 411 180ms",
		},
		{"Icecast, whose last field COMBINED leaves out", combined + " 1807", "COMBINED", "2025-10-10T13:55:36Z 192.0.2.7  GET /p 200 12 -1ns"},
		{
			"SHOUTcast", "#Software: SHOUTcast\n#Fields: c-ip c-dns date time cs-uri-stem c-status cs(User-Agent) sc-bytes x-duration avgbandwidth\n" +
				`192.0.2.1 h 2025-10-10 12:55:36 /stream?title=a 200 NSPlayer%2F10.0 65580 7 524640`,
			"W3C", "2025-10-10T12:55:36Z 192.0.2.1  GET /stream?title=a 200 65580 7s",
		},
		{
			"a date that is not beside its time", "#Fields: c-ip date cs-method cs-uri-stem sc-status time\n192.0.2.1 2025-10-10 GET /a 200 12:55:36",
			"W3C", "2025-10-10T12:55:36Z 192.0.2.1  GET /a 200 -1 -1ns",
		},
		{
			"Incapsula", "#Software: Incapsula LOGS API\n#Fields: date time c-ip cs(User-Agent) cs-uri cs-version cs(Referrer) cs-method cs-uri-query sc-status cs-bytes\n" +
				`"2025-10-10" "12:55:36" "192.0.2.1" "Mozilla/5.0 (X11)" "www.example.com/a" "HTTP" "" "GET" "b=1" "200" "10117"`,
			"W3C", "2025-10-10T12:55:36Z 192.0.2.1 www.example.com GET /a?b=1 200 -1 -1ns",
		},
		{
			"Incapsula, a request that was not answered", "#Fields: date time c-ip cs-uri cs-method sc-status\n" + `"2025-10-10" "12:55:36" "192.0.2.1" "www.example.com/a" "GET" ""`,
			"W3C", "2025-10-10T12:55:36Z 192.0.2.1 www.example.com GET /a 0 -1 -1ns",
		},
		{
			"IIS Advanced Logging", "#Software: IIS Advanced Logging Module\n#Fields:  date-local time-local s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(Host) sc-status TimeTakenMS\n" +
				`2025-10-10 12:55:36.363 10.0.0.1 GET /a - "192.0.2.1" "www.example.com" 200 109`,
			"W3C", "2025-10-10T12:55:36.363Z 192.0.2.1 www.example.com GET /a 200 -1 109ms",
		},
		{
			"columns that are aligned, and a time with a point", "#Fields:  c-ip  c-dns  date  time  cs-method  cs-uri  sc-status  time-taken  cs(User-Agent)\n" +
				`192.0.2.1      h.example      2025-10-10     12:55:36      GET      /a    200     0.5     "UA (X)"`,
			"W3C", "2025-10-10T12:55:36Z 192.0.2.1  GET /a 200 -1 500ms",
		},
		{
			"CloudFront, whose comment names its fields too", "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken\n" +
				"2025-10-10\t12:55:36\tFRA2\t182\t192.0.2.1\tGET\td1.cloudfront.net\t/a\t200\t-\tUA\t-\t-\tMiss\tx\twww.example.com\thttps\t217\t0.5",
			"CLOUDFRONT", "2025-10-10T12:55:36Z 192.0.2.1 www.example.com GET /a 200 182 500ms",
		},
		{
			"nginx's JSON, with the names of its variables", `{"time_iso8601":"2025-10-10T12:55:36+00:00","remote_addr":"192.0.2.1","request":"GET /a HTTP/1.1","uri":"/index.php","status":"200","body_bytes_sent":"12","request_time":"0.250","http_host":"www.example.com"}`,
			`{"`, "2025-10-10T12:55:36Z 192.0.2.1 www.example.com GET /a 200 12 250ms",
		},
	} {
		lines := bytes.Split([]byte(row.log), []byte{'\n'})
		f, _, err := Detect(lines, false)
		if err != nil {
			t.Errorf("%s: %v", row.says, err)
			continue
		}
		if got, mismatch := lastOf(f, lines); mismatch != nil || got != row.want || !strings.HasPrefix(f.Name(), row.format) {
			t.Errorf("%s: %s reads\n%s, want\n%s; %v", row.says, f.Name(), got, row.want, mismatch)
		}
	}
}

// lastOf reads lines, and shows the last of them.
func lastOf(f *Format, lines [][]byte) (string, *Mismatch) {
	var r Request
	var mismatch *Mismatch
	for _, line := range lines {
		if Ignored(line) {
			f.comment(line)
		} else {
			mismatch = f.Parse(line, &r)
		}
	}
	return fmt.Sprintf("%s %s %s %s %s %d %d %v", time.Unix(0, r.TimeNS).UTC().Format(time.RFC3339Nano), r.Host, r.VHost, r.Method,
		r.Target, r.Status, r.Bytes, time.Duration(r.DurationNS)), mismatch
}

// TestAGuessIsTakenWhenAskedFor: JSON whose keys nobody has documented is shown first, and read with --format guess.
func TestAGuessIsTakenWhenAskedFor(t *testing.T) {
	for _, row := range []struct{ says, log, want string }{
		{
			"no method, as if all were GET", `{"ip":"192.0.2.1","host":"www.example.com","path":"/a","status":"200","length":192,"date":"2025-10-10T12:55:36+00:00"}`,
			"2025-10-10T12:55:36Z 192.0.2.1 www.example.com  /a 200 192 -1ns",
		},
		{
			"keys of the user's own, milliseconds since the epoch", `{"ts":1760100936250,"ip":"192.0.2.1","verb":"GET","path":"/a","code":200,"size":12,"ua":"x"}`,
			"2025-10-10T12:55:36.25Z 192.0.2.1  GET /a 200 12 -1ns",
		},
		{
			"Elastic's common schema", `{"@timestamp":"2025-10-10T12:55:36.5Z","source":{"ip":"192.0.2.1"},"url":{"original":"/a","domain":"www.example.com"},"http":{"request":{"method":"GET","referrer":"-"},"response":{"status_code":200,"body":{"bytes":12}}},"user_agent":{"original":"UA"}}`,
			"2025-10-10T12:55:36.5Z 192.0.2.1 www.example.com GET /a 200 12 -1ns",
		},
		{
			"a list of clients", `{"time":"2025-10-10T12:55:36Z","x_forwarded_for":"192.0.2.1, 10.0.0.1","request":"POST /a HTTP/1.1","status":"302"}`,
			"2025-10-10T12:55:36Z 192.0.2.1  POST /a 302 -1 -1ns",
		},
		{"a known format goes first", `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /p HTTP/1.1" 200 12`, "2025-10-10T13:55:36Z 192.0.2.7  GET /p 200 12 -1ns"},
	} {
		s, err := Open([]string{writeFile(t, filepath.Join(t.TempDir(), "log"), []byte(row.log+"\n"))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.FormatFor(Spec{}); row.log[0] == '{' && (err == nil || !strings.Contains(err.Error(), "--format guess takes it so")) {
			t.Errorf("%s: it is read without being asked for, or not shown: %v", row.says, err)
		}
		f, err := s.FormatFor(Spec{Log: "guess"})
		if err != nil {
			t.Errorf("%s: %v", row.says, err)
			continue
		}
		if got, mismatch := lastOf(f, [][]byte{[]byte(row.log)}); mismatch != nil || got != row.want {
			t.Errorf("%s: %s reads\n%s, want\n%s; %v", row.says, f.Name(), got, row.want, mismatch)
		}
	}
	s, err := Open([]string{writeFile(t, filepath.Join(t.TempDir(), "log"), []byte("Dear diary, today it rained.\n"))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FormatFor(Spec{Log: "guess"}); err == nil || !strings.Contains(err.Error(), "has a method such as GET") {
		t.Errorf("nothing can be guessed of a diary: %v", err)
	}
}

// TestTimesWithoutAFractionAreWholeSeconds, whatever their format could express: a replay spreads them over the second.
func TestTimesWithoutAFractionAreWholeSeconds(t *testing.T) {
	const line = `{"ClientIP":"192.0.2.1","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeStartTimestamp":%s}` + "\n"
	for _, row := range []struct {
		says   string
		times  []string
		format string
		want   time.Duration
	}{
		{"seconds", []string{"1760100936", "1760100937"}, "", time.Second},
		{"RFC 3339", []string{`"2025-10-10T12:55:36Z"`}, "cloudflare", time.Second},
		{"nanoseconds", []string{"1760100936433000200"}, "", time.Millisecond},
		{"a fraction later on", []string{`"2025-10-10T12:55:36Z"`, `"2025-10-10T12:55:36.001Z"`}, "", time.Millisecond},
	} {
		text := ""
		for _, at := range row.times {
			text += fmt.Sprintf(line, at)
		}
		s, err := Open([]string{writeFile(t, filepath.Join(t.TempDir(), "log"), []byte(text))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.FormatFor(Spec{Log: row.format})
		if err != nil || f.Resolution() != row.want || f.LogTime() != formats.Received {
			t.Errorf("%s: %v %v", row.says, f, err)
		}
	}
}

// FuzzDetect feeds nonsense to the detection: it has to answer, in words that cannot harm a terminal.
func FuzzDetect(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(strings.Join(s.lines, "\n")))
	}
	f.Add([]byte("#Fields: c-ip\tdate cs-uri TIME c-status x-edge-location\n\"\" \"\x1b[31m\"\n"))
	f.Add([]byte(`{"remote_addr":"192.0.2.1","request":"GET / HTTP/1.1","msec":1e3,"` + "\u202e" + `":[{"":""}]}`))
	f.Add([]byte("www.example.com 192.0.2.1 - - [10/Oct/2025:13:55:36 +0000] (9 s) \"GET \x1b]0;x\x07 HTTP/1.1\" 200 12"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := bytes.Split(text, []byte{'\n'})
		format, _, err := Detect(lines, false)
		if err == nil {
			if _, err := Compile(Spec{Log: format.Name()}); err != nil {
				t.Fatalf("%s is found, and does not compile: %v", format.Name(), err)
			}
			for _, line := range lines {
				if Ignored(line) {
					format.comment(line)
				} else {
					checkParse(t, &Format{program: format.program, base: format.program}, line)
				}
			}
			return
		}
		for _, r := range err.Error() {
			if r < ' ' && r != '\n' {
				t.Fatalf("it says %q", err)
			}
		}
	})
}
