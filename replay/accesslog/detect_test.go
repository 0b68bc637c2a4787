package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog/formats"
)

func TestDetectKnowsEveryPreset(t *testing.T) {
	for _, s := range samples {
		var lines [][]byte
		for i := range 30 {
			line := s.lines[i%len(s.lines)]
			if mustCompile(t, Spec{Log: s.preset}).Parse([]byte(line), new(Request)) == nil || i%9 == 0 {
				lines = append(lines, []byte(line))
			}
		}
		want := s.preset
		if want == "AWSELB" {
			want = "AWSALB" // the same log; goaccess has two names for it
		}
		f, trials, err := Detect(lines, false)
		if err != nil {
			t.Errorf("%s: %v", s.preset, err)
			continue
		}
		if f.Name() != want || trials[0].Name != want || len(trials) != len(formats.Named) {
			t.Errorf("%s is taken for %s", s.preset, f.Name())
		}
	}
}

func TestDetectTellsALogWithMoreFieldsFromItsPreset(t *testing.T) {
	lines := [][]byte{[]byte(`192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12 "-" "Mozilla/5.0" "203.0.113.7, 10.0.0.1"`)}
	if f, _, err := Detect(lines, false); err != nil || f.Name() != "COMBINED" {
		t.Errorf("nginx's main format is read by COMBINED, not by TRAEFIKCLF: %v", err)
	}
}

func TestDetectDoesNotLoseTheAgentsOfAMixedLog(t *testing.T) {
	const line = `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12`
	lines := [][]byte{[]byte(line), []byte(line + ` "-" "UA"`), []byte(line + ` "-" "UA"`)}
	if f, _, err := Detect(lines, false); err != nil || f.Name() != "COMBINED" {
		t.Errorf("two of three lines go on after COMMON's last field: %v %v", f.Name(), err)
	}
}

func TestDetectSaysWhatItTried(t *testing.T) {
	for _, c := range []struct {
		why  string
		line string
		want []string
	}{
		{
			"a virtual host or a machine", `web1 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12 "-" "UA"`,
			[]string{fmt.Sprintf("tried %d presets on its first line", len(formats.Named)), "none read any", "the virtual host first, without a port", `--format '%v %h`},
		},
		{"a log whose comments name other fields", "#Fields: c-ip date time cs-uri-stem\n192.0.2.7 2026-11-25 10:00:00 /a", []string{"Its #Fields: line does not name cs-method", "have the server log"}},
		{"lines that their comment does not fit", "#Fields: date time c-ip cs-method cs-uri-stem\n2026-11-25 10:00:00 GET /a", []string{"By its #Fields: line it failed first: %m at column 25", "FORMAT='…'"}},
		{"no log at all", `Dear diary, today it rained.`, []string{`has a method such as GET, the first is "Dear diary`}},
		{"an error log", `Nov 25 10:00:00 web1 nginx: 2026/11/25 10:00:00 [error] 1#1: *9 failed, client: 192.0.2.1, request: "GET / HTTP/1.1"`, []string{`It is an error log: "Nov 25`, "Give the server's access log"}},
		{"messages", `time="2026-11-25T10:00:00Z" level=debug msg="Handling UDP stream"`, []string{"It is an error log"}},
		{"XML", `<Event xmlns="http://x"><Data Name="cs-method">GET</Data></Event>`, []string{"It is XML", "one line a request"}},
		{
			"JSON with other keys", `{"@timestamp":"2026-11-25T10:00:00Z","http":{"request_method":"GET","status":200},"client":{"ip":"192.0.2.1"},"uri":"/a"}`,
			[]string{`FORMAT='{"@timestamp":"%x","client":{"ip":"%h"},"http":{"request_method":"%m","status":"%s"},"uri":"%U"}'`, "reads 1 of them", `  %h  "192.0.2.1"`},
		},
		{
			"JSON behind a prefix", `2026-11-25T10:00:00.1+01:00 stdout F {"start_time":"2026-11-25T10:00:00Z",":authority":"h","method":"GET","path":"/a","downstream_remote_address":"192.0.2.1:99"}`,
			[]string{"It is JSON behind a prefix: sed", `--format '{":authority":"%v","downstream_remote_address":"%h:%^"`, `%U     "/a"`},
		},
		{"JSON without a client", `{"time":"2026-11-25T10:00:00Z","request":"GET / HTTP/1.1"}`, []string{"No field of it looks like the client's address", `%r  "GET / HTTP/1.1"`, "FORMAT='…'"}},
		{
			"fields with names in brackets", `2026/11/25 10:00:00 [2026-11-25 10:00:00.123] [origin:a.example] [client: 192.0.2.1] [useragent: Mozilla/5.0] GET /a 404`,
			[]string{`--format '%^ %^ [%x] [%^:%v] [%^: %h] [%^: %u] %m %U %s'`},
		},
		{
			"a list of clients", `192.0.2.1, 10.0.0.1 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12 "-" "UA"`,
			[]string{`--format '~h{, } %^ %^ [%d:%t %^] "%r" %s %b "%R" "%u"'`},
		},
		{
			"a time that is not known", `192.0.2.1 - - [February - 10, 2012:16:42:07] "GET / HTTP/1.0" 301 368`,
			[]string{"No field of it looks like a known time, which %x and --datetime-format can name", `%^  "[February - 10, 2012:16:42:07]"`},
		},
		{
			"a classic load balancer of AWS, and what is not HTTP", `2015-05-13T23:39:43.945958Z my-lb 192.0.2.1:2817 10.0.0.1:80 0.000086 0.001048 0.001337 200 200 0 57 "GET https://a:443/ HTTP/1.1" "curl/8.5.0" - -
2015-05-13T23:39:43.945958Z my-lb 192.0.2.1:2817 10.0.0.1:80 0.001069 0.000028 0.000041 - - 82 305 "- - - " "-" - -`,
			[]string{"Its lines are of several kinds: --format '%x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b \"%r\" \"%u\"' reads 1; none of these reads 1, the first is \"2015"},
		},
		{
			"three kinds of lines", `192.0.2.1 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12 "-" "UA"
www.example.com 192.0.2.1 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12 "-" "UA"
[Thu Oct 13 12:24:49.880562 2022] [ssl:info] [pid 9] End of file`,
			[]string{"--format 'COMBINED' reads 1; --format '%v %h", `none of these reads 1, the first is "[Thu Oct`, "with grep"},
		},
	} {
		_, _, err := Detect(bytes.Split([]byte(c.line), []byte{'\n'}), false)
		if !errors.Is(err, ErrUnknownFormat) {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: it does not say %q: %v", c.why, want, err)
			}
		}
	}
	if _, _, err := Detect([][]byte{[]byte("# only a comment")}, false); !errors.Is(err, ErrUnknownFormat) {
		t.Error(err)
	}
}

// TestNoLineIsReadWithAWrongClient: what stands before a line of Apache's is neither its client nor its virtual host.
func TestNoLineIsReadWithAWrongClient(t *testing.T) {
	const common = `192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /p HTTP/1.1" 200 12`
	const combined = common + ` "-" "UA"`
	for _, row := range []struct{ says, line, format, refused string }{
		{"a container's runtime", `2026-11-25T10:00:00.123456789Z stdout F ` + combined, `%^ %^ %^ %h %^[`, ""},
		{"syslog, with a day of one digit", `Nov  5 10:00:00 web1 nginx: ` + combined, `%^:%^:%^: %h %^[`, ""},
		{"syslog of a machine that is an address", `Nov 25 10:00:00 10.0.0.1 nginx[42]: ` + common, `%^:%^:%^: %h %^[`, ""},
		{"syslog of RFC 5424", `<190>1 2026-11-25T10:00:00Z web1 nginx - - - ` + combined, `%^ %^ %^ %^ %^ %^ %^ %h %^[`, ""},
		{"docker compose", `nginx-1  | ` + combined, `%^| %h %^[`, ""},
		{"LiteSpeed: the line is in quotes", `"` + common + `"`, `"%h %^[%d:%t %^] "%r" %s %b"`, ""},
		{"LiteSpeed, with an agent", `"` + combined + `"`, `"%h %^[%d:%t %^] "%r" %s %b "%R" "%u"`, ""},
		{"a virtual host", "www.example.com " + common, `%v %h %^[%d:%t %^] "%r" %s %b`, ""},
		{"a virtual host or a machine", "web1 " + combined, "", "Host     –         web1"},
		{"two addresses", "a 10.0.0.1 " + combined, "", `--format '%^ %^ %h %^[%d:%t %^] "%r" %s %b "%R" "%u"'`},
		{"a virtual host with its port", "www.example.com:443 " + combined, "VCOMBINED", ""},
		{"a client's name", "client.example.net" + strings.TrimPrefix(common, "192.0.2.7"), "COMMON", ""},
		{"a client's short name", "localhost" + strings.TrimPrefix(combined, "192.0.2.7"), "COMBINED", ""},
		{"a client without an address", "unix:" + strings.TrimPrefix(combined, "192.0.2.7"), "COMBINED", ""},
		{"a user with spaces in the name", strings.Replace(combined, "- -", "- John Q. Public", 1), "COMBINED", ""},
	} {
		f, _, err := Detect([][]byte{[]byte(row.line)}, false)
		if row.refused != "" {
			if err == nil || !strings.Contains(err.Error(), row.refused) {
				t.Errorf("%s: want it refused with %q, got %v", row.says, row.refused, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.says, err)
			continue
		}
		var r Request
		if mismatch := f.Parse([]byte(row.line), &r); mismatch != nil || !strings.HasPrefix(f.Name(), row.format) ||
			isAddress(r.Host) && string(r.Host) != "192.0.2.7" || string(r.Target) != "/p" || r.Bytes != 12 {
			t.Errorf("%s: read as %q: %s, %v", row.says, f.Name(), fieldsOf(&r), mismatch)
		}
	}
}

// TestEveryFormatWithoutANameCompiles checks that the strings that users are advised to give compile, and that they differ.
func TestEveryFormatWithoutANameCompiles(t *testing.T) {
	labels, logs := map[string]bool{}, map[string]bool{}
	for _, l := range formats.Unnamed {
		if labels[l.Label] || logs[l.Log] {
			t.Errorf("%s, %s: another variant has the same name or the same string", l.Label, l.Log)
		}
		labels[l.Label], logs[l.Log] = true, true
		if _, err := Compile(Spec{Log: l.Log}); err != nil {
			t.Errorf("%s: %v", l.Label, err)
		}
	}
}

func TestReadConfig(t *testing.T) {
	const text = `# goaccess.conf
time-format %H:%M:%S
date_format %d/%b/%Y
  log-format %h %^[%d:%t %^] "%r" %s %b

tz	Europe/Berlin
html-prefs {"theme":"bright"}
color-scheme 3
datetime-format %d/%b/%Y:%H:%M:%S %z
`
	spec, err := ReadConfig(strings.NewReader(text), "goaccess.conf")
	want := Spec{
		Log: `%h %^[%d:%t %^] "%r" %s %b`, Date: "%d/%b/%Y", Time: "%H:%M:%S", DateTime: "%d/%b/%Y:%H:%M:%S %z", TZ: "Europe/Berlin",
	}
	if err != nil || spec != want {
		t.Errorf("%+v %v", spec, err)
	}
	if got := (Spec{Log: "COMMON"}).Or(want); got.Log != "COMMON" || got.TZ != "Europe/Berlin" {
		t.Errorf("the command line goes first: %+v", got)
	}
	_, err = ReadConfig(strings.NewReader("log-format\n\ntz \n"), "my.conf")
	if err == nil || !strings.Contains(err.Error(), "my.conf, line 1: log-format has no value") || !strings.Contains(err.Error(), "line 3: tz") {
		t.Error(err)
	}
}

// An entry in the list of formats is all that a format needs.
func TestAToyPresetIsReadAndDetected(t *testing.T) {
	before := formats.Named
	t.Cleanup(func() { formats.Named = before })
	formats.Named = append(slices.Clone(formats.Named), formats.Format{
		Name: "TOY", Log: "%h|%x|%m|%U|%s|%b|%D", DateTime: "%s", Resolution: time.Second, LogTime: formats.Finished,
	})
	line := []byte("192.0.2.7|1760100936|GET|/a|200|12|1500")
	f, trials, err := Detect([][]byte{line}, false)
	if err != nil || f.Name() != "TOY" || trials[0].Valid != 1 {
		t.Fatalf("%v, tried %+v", err, trials)
	}
	var r Request
	if mismatch := mustCompile(t, Spec{Log: "toy"}).Parse(line, &r); mismatch != nil || string(r.Target) != "/a" || r.DurationNS != 1_500_000 {
		t.Errorf("%+v, %v", r, mismatch)
	}
	if f.LogTime() != formats.Finished || f.Resolution() != time.Second || !slices.Contains(Presets(), "TOY") {
		t.Errorf("the preset's own properties are lost: %v %v %v", f.LogTime(), f.Resolution(), Presets())
	}
}
