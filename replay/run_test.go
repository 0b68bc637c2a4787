package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
)

func TestRunSendsWhatTheLogSays(t *testing.T) {
	server := newSite(t)
	log := writeLog(t,
		logLine(0, "GET /a?x=1 HTTP/1.1", "Mozilla/5.0"),
		logLine(0, `GET /q=\x22quoted\x22 HTTP/1.1`, "-"),
		logLine(0, "GET http://elsewhere.example/abs HTTP/1.1", "UA"),
		logLine(0, "HEAD /head HTTP/1.1", `say \"hi\"`),
		logLine(0, "POST /form HTTP/1.1", "UA"),
		logLine(0, "CONNECT elsewhere.example:443 HTTP/1.1", "UA"),
		logLine(0, "GET /a b HTTP/1.1", "UA"),
		logLine(0, `\x16\x03\x01`, "UA"),
		logLine(0, `GET /crlf HTTP/1.1`, `UA\x0d\x0aX-Evil: 1`),
	)
	out := t.TempDir()
	code, table, errOut := call("run", log, "--target", server.URL, "--out", out, "--quiet", "--speed", "10")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	want := []string{
		"GET /a?x=1 " + host + "|Mozilla/5.0|",
		`GET /q="quoted" ` + host + "||",
		"GET /abs " + host + "|UA|", // a path, whatever host the URL has
		"HEAD /head " + host + `|say "hi"|`,
	}
	slices.Sort(want)
	got := server.requests()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("sent\n%q, want\n%q", got, want)
	}
	run := latest(t, out)
	if run.Summary.Requests.Sent != 4 || *run.Summary.Requests.Total != 9 {
		t.Errorf("%+v", run.Summary.Requests)
	}
	skipped := map[string]uint64{"method_not_allowed": 2, "unsafe_target": 1, "not_http": 1, "unsafe_header": 1}
	if fmt.Sprint(run.Summary.Requests.Skipped) != fmt.Sprint(skipped) {
		t.Errorf("skipped %v, want %v", run.Summary.Requests.Skipped, skipped)
	}
	for _, part := range []string{"MTT (ms)", "p99.9", "Total", "Run directory: " + out} {
		if !strings.Contains(table, part) {
			t.Errorf("the table lacks %q:\n%s", part, table)
		}
	}
	if run.Run.Status != record.Complete || run.Run.Loop != record.Open || run.Run.LogStart.IsZero() {
		t.Errorf("%+v", run.Run)
	}
}

func TestWhoseHostIsSent(t *testing.T) {
	const own = "the target's"
	log := writeLog(t,
		"shop.example "+logLine(0, "GET /named HTTP/1.1", "UA"),
		"- "+logLine(0, "GET https://user@blog.example:443/absolute HTTP/1.1", "UA"),
		"- "+logLine(0, "GET HTTP://blog.example:8080?query HTTP/1.1", "UA"),
		"- "+logLine(0, "GET http://a,b/unsafe HTTP/1.1", "UA"),
		"- "+logLine(0, "GET /plain HTTP/1.1", "UA"),
	)
	for _, c := range []struct {
		host string
		want [5]string // none: it is not sent
	}{
		{"auto", [5]string{"shop.example", own, own, own, own}},
		{"log", [5]string{"shop.example", "blog.example", "blog.example:8080", "", own}},
		{"target", [5]string{own, own, own, own, own}},
	} {
		server := newSite(t)
		code, _, errOut := call("run", log, "--format", `%v %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`, "--target", server.URL,
			"--out", t.TempDir(), "--quiet", "--speed", "max", "--host", c.host)
		var want []string
		for i, target := range []string{"/named", "/absolute", "/?query", "/unsafe", "/plain"} {
			if c.want[i] != "" {
				want = append(want, "GET "+target+" "+c.want[i]+"|UA|")
			}
		}
		got := server.requests()
		for i := range got {
			got[i] = strings.Replace(got[i], strings.TrimPrefix(server.URL, "http://"), own, 1)
		}
		slices.Sort(want)
		slices.Sort(got)
		if code != 0 || !slices.Equal(got, want) {
			t.Errorf("--host %s: exit %d %s, sent\n%q, want\n%q", c.host, code, errOut, got, want)
		}
	}
}

func TestRunFilters(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, logLine(i, fmt.Sprintf("GET /%d HTTP/1.1", i), "UA"))
	}
	rows := []struct {
		why  string
		args []string
		want int
	}{
		{"all of it", nil, 20},
		{"--limit", []string{"--limit", "7"}, 7},
		{"--duration, at a hundred times the pace", []string{"--duration", "95ms"}, 10},
		{"--from and --to", []string{"--from", "2026-11-20 10:00:05", "--to", "20/Nov/2026:11:00:09 +0100"}, 4},
		{"--include", []string{"--include", "^/1"}, 11},
		{"--exclude", []string{"--exclude", "^/1"}, 9},
		{"--loops", []string{"--loops", "3"}, 60},
		{"--rate", []string{"--speed", "1", "--rate", "400"}, 20},
		{"--speed max", []string{"--speed", "max", "--connections", "3"}, 20},
		{"--users", []string{"--users", "4"}, 20},
	}
	for _, row := range rows {
		server := newSite(t)
		out := t.TempDir()
		args := append([]string{"run", writeLog(t, lines...), "--target", server.URL, "--out", out, "--quiet", "--speed", "100", "--burst"}, row.args...)
		code, _, errOut := call(args...)
		if code != 0 || len(server.requests()) != row.want {
			t.Errorf("%s: exit %d, %d requests, want %d. %s", row.why, code, len(server.requests()), row.want, errOut)
		}
		if run := latest(t, out); int(run.Len()) != row.want || run.Summary.Requests.Errors != 0 {
			t.Errorf("%s: %d records, %d errors", row.why, run.Len(), run.Summary.Requests.Errors)
		}
	}
}

func TestAStrayTimeStampDoesNotFreezeARun(t *testing.T) {
	body := func(from int) (lines []string) {
		for i := range 20 {
			lines = append(lines, logLine(from+i, "GET /a HTTP/1.1", "UA"))
		}
		return lines
	}
	on := func(date string, lines ...string) []string {
		return strings.SplitAfter(strings.ReplaceAll(strings.Join(lines, ""), "20/Nov/2026", date), "\n")
	}
	stray := func(date string) []string { return on(date, logLine(0, "GET /a HTTP/1.1", "UA")) }
	rows := []struct {
		why    string
		log    []string
		args   []string
		says   string
		strays uint64
		pauses *record.Pauses
	}{
		{"a log that is well", body(0), nil, "", 0, nil},
		{"1970 in its middle", slices.Concat(body(0), stray("01/Jan/1970"), body(20)), nil, "access.log:21: the time stamp 1970-01-01 10:00:00 UTC strays", 1, nil},
		{"2100 at its end", append(body(0), stray("01/Jan/2100")...), nil, "access.log:21: the time stamp 2100-01-01", 1, nil},
		{"1970 at its begin, with users", append(stray("01/Jan/1970"), body(0)...), []string{"--users", "2"}, "access.log:1: the time stamp 1970", 1, nil},
		{"a missing day", append(body(0), on("22/Nov/2026", body(0)...)...), []string{"--max-gap", "5s"},
			"access.log:21: nothing was logged for 47h59m41s, from 2026-11-20 10:00:19 UTC to 2026-11-22 10:00:00 UTC: this pause is shortened to 5s (see --max-gap)",
			0, &record.Pauses{Shortened: 1, CutS: 172776}},
	}
	server := newSite(t)
	for _, row := range rows {
		out := t.TempDir()
		args := append([]string{"run", writeLog(t, row.log...), "--target", server.URL, "--out", out, "--quiet", "--speed", "100", "--burst"}, row.args...)
		code, _, errOut := call(args...)
		if code != 0 || (errOut == "") != (row.says == "") || !strings.Contains(errOut, row.says) || strings.Count(errOut, "\n") > 1 {
			t.Errorf("%s: exit %d, says %q, want %q", row.why, code, errOut, row.says)
		}
		run := latest(t, out).Run
		if run.Logs[0].Strays != row.strays || !reflect.DeepEqual(run.LogPauses, row.pauses) {
			t.Errorf("%s: %d strays and %+v in run.json, want %d and %+v", row.why, run.Logs[0].Strays, run.LogPauses, row.strays, row.pauses)
		}
	}
}

func TestARunEndsWhereItsFolderIsRemoved(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { _ = os.RemoveAll(out) }))
	t.Cleanup(server.Close)
	var lines []string
	for i := range 3000 {
		lines = append(lines, logLine(i, "GET / HTTP/1.1", "UA"))
	}
	code, table, errOut := call("run", writeLog(t, lines...), "--target", server.URL, "--out", out, "--quiet", "--rate", "50")
	if code != cli.ExitNo || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "was removed or replaced while the run wrote to it") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	if !strings.Contains(table, "Total") || strings.Contains(table, "Run directory") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestARunSaysWhatItIsCalled(t *testing.T) {
	server := newSite(t)
	rows := []struct {
		why     string
		args    []string
		backend string
		repeat  int
		refused string
	}{
		{"nothing is nothing", nil, "", 0, ""},
		{"both are kept", []string{"--backend", "sata mirror", "--repeat", "3"}, "sata mirror", 3, ""},
		{"a name may have 80 characters", []string{"--backend", strings.Repeat("ä", 80)}, strings.Repeat("ä", 80), 0, ""},
		{"and no more", []string{"--backend", strings.Repeat("x", 81)}, "", 0, "--backend: give a name"},
		{"no name is none", []string{"--backend="}, "", 0, "--backend: give a name"},
		{"repeats count from 1", []string{"--repeat", "0"}, "", 0, "--repeat: 0 is out of range"},
	}
	for _, row := range rows {
		out := t.TempDir()
		args := []string{"run", writeLog(t, logLine(0, "GET / HTTP/1.1", "UA")), "--target", server.URL, "--out", out, "--quiet"}
		code, _, errOut := call(append(args, row.args...)...)
		if row.refused != "" {
			if code != cli.ExitUsage || !strings.Contains(errOut, row.refused) {
				t.Errorf("%s: exit %d: %s", row.why, code, errOut)
			}
			continue
		}
		run := latest(t, out).Run
		backend, repeat := "", 0
		if run.Backend != nil {
			backend = *run.Backend
		}
		if run.Repeat != nil {
			repeat = *run.Repeat
		}
		if code != 0 || backend != row.backend || repeat != row.repeat {
			t.Errorf("%s: exit %d, backend %q, repeat %d: %s", row.why, code, backend, repeat, errOut)
		}
	}
}

func TestLoopsCountWhatTheySkip(t *testing.T) {
	server := newSite(t)
	log := writeLog(t, logLine(0, "GET /a HTTP/1.1", "UA"), logLine(0, "POST /b HTTP/1.1", "UA"))
	for _, pace := range [][]string{{"--speed", "max"}, {"--rate", "500"}} {
		out := t.TempDir()
		code, _, errOut := call(append([]string{"run", log, "--target", server.URL, "--out", out, "--quiet", "--loops", "5"}, pace...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errOut)
		}
		if r := latest(t, out).Summary.Requests; r.Sent != 5 || r.Skipped["method_not_allowed"] != 5 || *r.Total != 10 {
			t.Errorf("%v: %+v", pace, r)
		}
	}
}

func TestRunAgainstTheEmbeddedOrigin(t *testing.T) {
	t.Setenv(asProgram, "1")
	log := writeLog(t,
		logLine(0, "GET /page HTTP/1.1", "UA"),
		strings.Replace(logLine(1, "GET /gone HTTP/1.1", "UA"), `" 200 5`, `" 404 9`, 1),
		strings.Replace(logLine(2, "GET /page HTTP/1.1", "UA2"), `" 200 5`, `" 304 0`, 1),
		logLine(3, "GET /page HTTP/1.0", "UA3"),
	)
	out := t.TempDir()
	code, text, errOut := call("run", log, "--out", out, "--quiet", "--speed", "20", "--json", "--grinder-log", "--hdr-log")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	var summary record.Summary
	if err := json.Unmarshal([]byte(text), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Requests.OK != 4 || summary.Requests.StatusMismatch != 0 || summary.Requests.BytesMismatch != 0 {
		t.Errorf("%+v", summary.Requests)
	}
	for _, name := range []string{"requests.npy", "routes.json", "errors.json", "events.jsonl", "run.json", "summary.json", "grinder-0-data.log", "latency.hlog"} {
		if _, err := os.Stat(filepath.Join(out, "latest", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestRunReadsStandardInput(t *testing.T) {
	server := newSite(t)
	out := t.TempDir()
	code, _, errOut := callWith(logLine(0, "GET / HTTP/1.1", "UA"), "run", "-", "--target", server.URL, "--out", out, "--quiet")
	if code != 0 || len(server.requests()) != 1 {
		t.Errorf("exit %d, %d requests: %s", code, len(server.requests()), errOut)
	}
	if logs := latest(t, out).Run.Logs; len(logs) != 1 || logs[0].Path != "-" {
		t.Errorf("%+v", logs)
	}
}

// refused is a command line that is wrong, and what is said of it.
type refused struct {
	why  string
	args []string
	want []string
}

func (row refused) check(t *testing.T) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "results")
	args := append([]string{"run", "--quiet"}, row.args...)
	if !slices.Contains(row.args, "--out") {
		args = append(args, "--out", out)
	}
	code, _, errOut := call(args...)
	if code != 2 {
		t.Errorf("%s: exit %d, want 2: %s", row.why, code, errOut)
	}
	for _, part := range row.want {
		if !strings.Contains(errOut, part) {
			t.Errorf("%s: %q does not say %q", row.why, errOut, part)
		}
	}
	for _, never := range []string{"hunter2", "goroutine", "panic", "\x1b"} {
		if strings.Contains(errOut, never) {
			t.Errorf("%s: %q shows %q", row.why, errOut, never)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "latest")); err == nil {
		t.Errorf("%s: left a run directory", row.why)
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	server := newSite(t)
	refuses := httptest.NewServer(nil)
	refuses.Close()
	good := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	binary := filepath.Join(t.TempDir(), "binary.log")
	if err := os.WriteFile(binary, []byte("\x7fELF\x00\x01\x02\x00\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	rejects := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"), "nonsense\n", "\x1b[2Jmore\n")
	copied := writeLog(t, logLine(0, "GET / HTTP/1.1", "UA"))
	readable := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(readable, []byte("Cookie: a=b\n"), 0o644); err != nil { // #nosec G306 -- that is the mistake
		t.Fatal(err)
	}
	target := func(args ...string) []string { return append([]string{good, "--target", server.URL}, args...) }
	rows := []refused{
		{"no log", nil, []string{"<log>"}},
		{"no such log", []string{"nowhere.log"}, []string{"nowhere.log", "does not exist"}},
		{"a directory", []string{t.TempDir()}, []string{"is a directory"}},
		{"an empty log", []string{writeLog(t, "")}, []string{"is empty"}},
		{"a binary file", []string{binary}, []string{"not text"}},
		{"only comments", []string{writeLog(t, "# comment\n", "\n")}, []string{"no lines"}},
		{"too many rejects", []string{rejects, "--format", "COMBINED"}, []string{"(rejected lines: 2 of 3)", "--allow-rejects", "column"}},
		{"a log and its copy", append([]string{copied}, target()...), []string{copied + " and " + good, "--allow-duplicates"}},
		{"an unknown specifier", target("--format", "%h %Q"), []string{"%Q"}},
		{"a format that lacks the date", target("--format", "%h %r"), []string{"%d"}},
		{"speed 0", target("--speed", "0"), []string{"--speed", "from 0.0001"}},
		{"a negative speed", target("--speed=-1"), []string{"--speed"}},
		{"a speed in words", target("--speed", "fast"), []string{"--speed", "max"}},
		{"a speed that is not a number", target("--speed", "NaN"), []string{"--speed"}},
		{"no connections", target("--speed", "max", "--connections", "0"), []string{"--connections"}},
		{"contradictions", target("--speed", "2", "--rate", "5"), []string{"--rate and --speed"}},
		{"several mistakes at once", target("--speed", "0", "--include", "(", "--route", "nonsense", "--from", "tomorrow"),
			[]string{"--speed", "--include", "--route", "--from"}},
		{"an endless loop", target("--loops", "0"), []string{"--duration"}},
		{"more users than open files", target("--users", "1100000000"), []string{"--users", "ulimit -n"}},
		{"a secret on the command line", target("--header", "Cookie: session=hunter2"), []string{"--header-file"}},
		{"a secret that others can read", target("--header-file", readable), []string{"chmod 600"}},
		{"a header that frames", target("--header", "Content-Length: 5"), []string{"Content-Length"}},
		{"a target that refuses", []string{good, "--target", refuses.URL}, []string{"refuses connections"}},
		{"a target that resolves to nothing", []string{good, "--target", "http://nowhere.invalid"}, []string{"does not resolve"}},
		{"a target that is none", []string{good, "--target", "nowhere"}, []string{"base URL"}},
		{"an output folder that is a file", target("--out", good), []string{"--out"}},
		{"connect-to without a target", []string{good, "--connect-to", "127.0.0.1:1"}, []string{"--target"}},
		{"an unknown flag", target("--sped", "1"), []string{"--sped"}},
	}
	for _, row := range rows {
		row.check(t)
	}
}

func TestALogWithoutAnythingToSendFails(t *testing.T) {
	server := newSite(t)
	out := t.TempDir()
	code, _, errOut := call("run", writeLog(t, logLine(0, "POST / HTTP/1.1", "UA")), "--target", server.URL, "--out", out, "--quiet")
	if code != 1 || !strings.Contains(errOut, "no request to send") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	if run := latest(t, out); run.Run.Status != record.Failed {
		t.Errorf("status %s", run.Run.Status)
	}
}

// secret is planted wherever a log has secrets. Every file of a run is searched for its first letters.
const secret = "Hunter2hunter2"

// plants are lines of logs with secrets in every field that can hold one; each parses.
var plants = []struct{ says, format, line string }{
	{"addresses", "COMBINED", `192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET /a?token=SECRET&b=2 HTTP/1.1" 200 5 "https://u:SECRET@h/?next=%2Fx%3Fsid%3DSECRET" "UA Bearer SECRET"`},
	{"headers at the end", "COMBINED", `192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET /?a=1&to%6ben=SECRET HTTP/1.1" 200 5 "-" "UA" "Basic SECRET" "wordpress_logged_in_ab=SECRET; theme=SECRET" "Authorization: Digest SECRET"`},
	{"a virtual host", "VCOMMON", `example.com:80 192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET /callback?code=SECRET HTTP/1.1" 200 5`},
	{"headers in JSON", "CADDY", `{"ts":1795168800.5,"request":{"remote_ip":"192.0.2.1","proto":"HTTP/1.1","method":"GET","host":"h","uri":"/a?api_key=SECRET","headers":{"User-Agent":["UA"],"Referer":["https://h/?pwd=SECRET"],"Authorization":["Bearer SECRET"],"X-Api-Key":"SECRET","Cookie":["a=SECRET; b=SECRET"]}},"duration":0.001,"size":5,"status":200,"resp_headers":{"Set-Cookie":["sid=SECRET; Path=/","x=SECRET"]}}`},
	{"queries of their own", "W3C", `2026-11-20 10:00:00 192.0.2.9 GET /a token=SECRET 80 - 192.0.2.1 UA https://h/?session=SECRET 200 0 0 5`},
}

// recordings are files with secrets in every field that can hold one, in the forms that are not lines.
var recordings = []struct{ name, text string }{
	{"site.har", `{"log":{"version":"1.2","entries":[
{"startedDateTime":"2026-11-20T10:00:00.250+01:00","time":120.5,"request":{"method":"GET","url":"https://u:SECRET@site.example/?p=1&token=SECRET","httpVersion":"h2","headers":[{"name":"User-Agent","value":"UA"},{"name":"Cookie","value":"a=1; wordpress_logged_in_abc=SECRET"},{"name":"Authorization","value":"Bearer SECRET"},{"name":"Referer","value":"https://site.example/?sid=SECRET"}],"cookies":[{"name":"sid","value":"SECRET"}],"queryString":[{"name":"token","value":"SECRET"}],"bodySize":0},"response":{"status":200,"headers":[{"name":"Set-Cookie","value":"sid=SECRET"}],"bodySize":5120}},
{"startedDateTime":"2026-11-20T09:00:05Z","time":80,"request":{"method":"POST","url":"https://site.example/wp-comments-post.php","httpVersion":"http/1.1","headers":[],"bodySize":24,"postData":{"mimeType":"application/x-www-form-urlencoded","text":"comment=a&pwd=SECRET"}},"response":{"status":302,"bodySize":0}},
{"startedDateTime":"2026-11-20T09:00:06Z","time":80,"request":{"method":"POST","url":"https://site.example/reply","httpVersion":"http/1.1","headers":[],"bodySize":-1,"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"_xfToken","value":"SECRET"}]}},"response":{"status":303,"bodySize":0}},
{"startedDateTime":"never","time":80,"request":{"method":"GET","url":"https://site.example/?token=SECRET","headers":[{"name":"Cookie","value":"a=SECRET"}]},"response":{"status":200,"bodySize":0}}]}}`},
	{"requests.gor", strings.Join([]string{
		"1 aa11 1760100936250000000 0\nGET /?p=1&api_key=SECRET HTTP/1.1\r\nHost: site.example\r\nUser-Agent: UA\r\nCookie: xf_user=SECRET\r\nAuthorization: Basic SECRET\r\nReferer: https://site.example/?token=SECRET\r\n\r\n",
		"1 aa12 1760100936500000000 0\nPOST /reply HTTP/1.1\r\nHost: site.example\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 40\r\n\r\nmessage=a&_xfToken=SECRET&password=SECRET",
		"1 aa14 1760100936600000000 0\nGET /b HTTP/1.1\r\nHost: site.example\r\n\r\n",
		"1 aa15 1760100936600000000 0\nGET /c HTTP/1.1\r\nHost: site.example\r\n\r\n",
		"1 aa13 1760100936600000000 0\nno request ?token=SECRET\r\nCookie: a=SECRET\r\n\r\n",
		"2 aa11 1760100936370000000 120000000\nHTTP/1.1 200 OK\r\nSet-Cookie: sid=SECRET\r\nContent-Length: 3\r\n\r\nabc",
	}, "\n🐵🙈🙉\n")},
}

// TestNoFileOfARunHoldsASecretOfARecording: neither of a whole one nor of one that was cut off anywhere, and the terminal
// has none either.
func TestNoFileOfARunHoldsASecretOfARecording(t *testing.T) {
	site := newSite(t)
	for _, one := range recordings {
		whole := strings.ReplaceAll(one.text, "SECRET", secret)
		sent := uint64(0)
		for at := len(whole); at > 0; at -= 60 {
			path, out := filepath.Join(t.TempDir(), one.name), t.TempDir()
			if err := os.WriteFile(path, []byte(whole[:at]), 0o600); err != nil {
				t.Fatal(err)
			}
			_, table, errOut := call("run", path, "--target", site.URL, "--out", out, "--quiet", "--speed", "max", "--allow-rejects",
				"--methods", "GET,POST", "--grinder-log", "--hdr-log")
			nothingOf(t, out, table+errOut, secret[:7])
			if at == len(whole) {
				got := latest(t, out)
				if sent = got.Summary.Requests.Sent; got.Run.Logs[0].Failed == 0 {
					t.Errorf("%s: nothing was rejected", one.name)
				}
			}
		}
		if sent == 0 {
			t.Errorf("%s: nothing was sent", one.name)
		}
	}
}

// TestARefusedLogShowsNoSecret: neither in the columns of its first line nor where a format failed.
func TestARefusedLogShowsNoSecret(t *testing.T) {
	lines := []string{
		`foo; GET /x?token=SECRET&a=1; Authorization: Bearer SECRET; wordpress_logged_in_x=SECRET; "password=SECRET"`,
		`Nov 26 10:00:00 web1 x[1]: {"ts":1,"uri":"/x?token=SECRET","headers":{"Cookie":"a=SECRET; b=SECRET"}}`,
		`GET /?token=SECRET`, `token=SECRET nothing`, `<event url="/?a=1&token=SECRET"/>`, `[error] Cookie: SECRET`,
	}
	for _, plant := range plants {
		lines = append(lines, "x "+plant.line, plant.line[:len(plant.line)/2], "Nov 26 10:00:00 "+plant.line)
	}
	for _, line := range lines {
		for _, format := range [][]string{nil, {"--format", "COMBINED"}, {"--format", "CADDY"}, {"--format", "%v %h %x %U %s"}} {
			text := strings.ReplaceAll(line, "SECRET", secret)
			code, _, errOut := call(append([]string{"parse", writeLog(t, text+"\n", text+"\n")}, format...)...)
			if strings.Contains(errOut, secret[:7]) {
				t.Errorf("%s, %q: exit %d: %s", line, format, code, errOut)
			}
		}
	}
}

// TestNoFileOfARunHoldsASecret: of lines that parse, and of those cut off or spoilt anywhere, no file of the run
// directory has a secret. The names that tell what is one are left whole.
func TestNoFileOfARunHoldsASecret(t *testing.T) {
	for _, plant := range plants {
		whole := strings.ReplaceAll(plant.line, "SECRET", secret)
		var lines []string
		for at := 0; at < len(whole); at++ {
			switch {
			case at%4 == 0:
				lines = append(lines, whole[:at]+"\n") // a disk that was full
			case at%4 == 2 && !strings.Contains(whole[max(0, at-60):min(len(whole), at+60)], secret):
				lines = append(lines, whole[:at]+"\x00"+whole[at+1:]+"\n")
			}
			lines = append(lines, whole+"\n")
		}
		out := t.TempDir()
		code, _, errOut := call("run", writeLog(t, lines...), "--format", plant.format, "--target", newSite(t).URL, "--out", out, "--quiet", "--speed", "max", "--allow-rejects", "--grinder-log", "--hdr-log")
		if got := latest(t, out); code != cli.ExitYes || got.Summary.Requests.Sent < uint64(len(whole)) || got.Run.Logs[0].Failed < 20 {
			t.Fatalf("%s: exit %d: %d sent, %d rejected: %s", plant.says, code, got.Summary.Requests.Sent, got.Run.Logs[0].Failed, errOut)
		}
		if strings.Contains(errOut, secret[:7]) {
			t.Errorf("%s: the terminal shows a secret: %s", plant.says, errOut)
		}
		files, _ := filepath.Glob(filepath.Join(out, "*", "*"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, secret[:7]) {
					t.Errorf("%s: %s holds a secret: %s", plant.says, filepath.Base(file), line)
					break
				}
			}
		}
	}
}
