package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/cli"
)

const parsedLine = `192.0.2.7 - - [10/Oct/2025:13:55:36 +0200] "GET /a?b=\"<script> HTTP/1.1" 200 12 "http://x/" "UA"` + "\n"

func logFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func runParse(in string, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = runMain(append([]string{"parse"}, args...), cli.Streams{In: strings.NewReader(in), Out: &o, Err: &e, Name: "replay"})
	return code, o.String(), e.String()
}

func TestParseSaysWhichLinesSpeakAgainstTheFormat(t *testing.T) {
	path := logFile(t, parsedLine+parsedLine+"www.example.com "+parsedLine)
	const want = `1 of the first 3 lines are hardly what COMBINED reads them as: %h is not an address, and one follows it: "www.example.com"` + "\n"
	if code, _, errOut := runParse("", path); code != 0 || errOut != want {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestParsePrintsOneObjectARequest(t *testing.T) {
	path := logFile(t, parsedLine+"# comment\n"+parsedLine)
	code, out, errOut := runParse("", path)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || errOut != "" || len(lines) != 2 {
		t.Fatal(code, out, errOut)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"file": path, "line": 3.0, "time": "2025-10-10T11:55:36Z", "host": "192.0.2.7", "method": "GET", "target": `/a?b=\"<script>`,
		"protocol": "HTTP/1.1", "status": 200.0, "bytes": 12.0, "referer": "http://x/", "user_agent": "UA",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if _, ok := got["vhost"]; ok || len(got) != 11 {
		t.Errorf("what the log does not have is left out: %v", got)
	}
	if strings.Contains(out, "<script>") {
		t.Error("the output can be put into a page as it is")
	}
}

func TestParseKeepsBytesThatAreNoText(t *testing.T) {
	const agent = "caf\xe9 \x1b[31m \u2028"
	_, out, _ := runParse("", logFile(t, strings.Replace(parsedLine, `"UA"`, `"`+agent+`"`, 1)))
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	exact, err := base64.StdEncoding.DecodeString(got["user_agent_base64"].(string))
	if err != nil || string(exact) != agent {
		t.Errorf("%q %v", exact, err)
	}
	if got["user_agent"] != "caf\ufffd \x1b[31m \u2028" {
		t.Errorf("%q", got["user_agent"])
	}
	if strings.ContainsAny(out, "\x1b\u2028") {
		t.Error("control characters are escaped")
	}
}

func TestParseStats(t *testing.T) {
	path := logFile(t, strings.Repeat(parsedLine, 20)+"nonsense\x1b[31m\n\n"+strings.Replace(parsedLine, "13:55:36", "13:56:37", 1))
	code, out, errOut := runParse("", "--stats", path)
	want := `{"format":"COMBINED","lines":23,"valid":21,"failed":1,"ignored":1,"bytes":252,"first":"2025-10-10T11:55:36Z","last":"2025-10-10T11:56:37Z","duration_s":61}` + "\n"
	if code != 0 || out != want {
		t.Errorf("%d\n%s", code, out)
	}
	if !strings.Contains(errOut, path+":21: rejected: %h at column 1") || strings.Contains(errOut, "\x1b") {
		t.Errorf("%q", errOut)
	}
	if _, _, errOut := runParse("", "--stats", "--quiet", path); errOut != "" {
		t.Errorf("--quiet says %q", errOut)
	}
}

func TestParseReadsStandardInput(t *testing.T) {
	if code, out, errOut := runParse(parsedLine, "--stats", "-"); code != 0 || !strings.Contains(out, `"valid":1`) {
		t.Error(code, out, errOut)
	}
}

func TestParseTakesFormatsFromGoaccessConf(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "goaccess.conf")
	text := "log-format %d|%t|%h|%r\ndate-format %Y%m%d\ntime-format %H%M\ntz Europe/Berlin\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := runParse("20251010|1355|192.0.2.7|GET / HTTP/1.1\n", "--config", conf, "-")
	if code != 0 || !strings.Contains(out, `"time":"2025-10-10T11:55:00Z"`) {
		t.Error(code, out, errOut)
	}
}

func TestParseRefusesInOneSentence(t *testing.T) {
	good := logFile(t, parsedLine)
	half := logFile(t, strings.Repeat(parsedLine+parsedLine+"nonsense\n", 10))
	for _, c := range []struct {
		why  string
		args []string
		says string
	}{
		{"no log", nil, "log"},
		{"a log that is not there", []string{"/no/such.log"}, "does not exist: check the name"},
		{"an empty log", []string{logFile(t, "")}, "is empty"},
		{"comments only", []string{"--format", "W3C", logFile(t, "#Software: IIS\n")}, "no requests"},
		{"an unknown specifier", []string{"--format", "%h %d %r %Z", good}, "%Z is not a specifier"},
		{"an unknown zone", []string{"--format", "COMBINED", "--tz", "Nowhere", good}, "Europe/Berlin"},
		{"a configuration that is not there", []string{"--config", "/no/goaccess.conf", good}, "no such file"},
		{"no format fits", []string{logFile(t, "one\ntwo\n")}, fmt.Sprintf("tried %d presets", len(accesslog.Presets()))},
		{"a log and its copy", []string{good, logFile(t, parsedLine+parsedLine)}, "--allow-duplicates"},
		{"too many rejects", []string{"--format", "COMBINED", half}, "(rejected lines: 10 of 30)"},
		{"too many rejects, totals", []string{"--format", "COMBINED", "--stats", half}, "--allow-rejects"},
	} {
		code, _, errOut := runParse("", c.args...)
		if code != cli.ExitUsage || !strings.Contains(errOut, c.says) {
			t.Errorf("%s: %d %q", c.why, code, errOut)
		}
	}
	if code, out, _ := runParse("", "--allow-rejects", "--stats", half); code != 0 || !strings.Contains(out, `"failed":10`) {
		t.Error(code, out)
	}
	if code, out, _ := runParse("", "--allow-duplicates", "--stats", good, logFile(t, parsedLine)); code != 0 || !strings.Contains(out, `"valid":2`) {
		t.Error(code, out)
	}
}

func TestParseHelpHasExamples(t *testing.T) {
	if code, out, _ := runParse("", "--help"); code != 0 || !strings.Contains(out, "replay parse --stats 'examples/access.log*'") {
		t.Error(code, out)
	}
}

func TestStatsNameTimesThatCannotBe(t *testing.T) {
	at := func(date string) string { return strings.Replace(parsedLine, "10/Oct/2025", date, 1) }
	hour := func(hour string) (lines string) {
		for minute := range 60 {
			lines += strings.Replace(parsedLine, "13:55:36 +0200", fmt.Sprintf("%s:%02d:00 +0000", hour, minute), 1)
		}
		return lines
	}
	rows := []struct {
		why, log string
		args     []string
		want     string
	}{
		{"times as they should be", parsedLine + parsedLine, nil, ""},
		{"a stray", parsedLine + at("01/Jan/1970") + parsedLine, nil, ":2: the time stamp 1970-01-01 11:55:36 UTC strays"},
		{"a pause", parsedLine + at("13/Oct/2025"), nil, ":2: nothing was logged for 72h0m0s, from 2025-10-10 11:55:36 UTC"},
		{"a clock that was set back", hour("10") + hour("10"), nil, ":61: the clock was set back, from 2025-10-10 10:59:00 UTC to 2025-10-10 10:00:00 UTC; a replay goes on"},
		{"nothing is said where nothing should be", parsedLine + at("13/Oct/2025"), []string{"--quiet"}, ""},
	}
	for _, row := range rows {
		code, _, errOut := runParse("", append(row.args, "--stats", logFile(t, row.log))...)
		if code != 0 || (errOut == "") != (row.want == "") || !strings.Contains(errOut, row.want) {
			t.Errorf("%s: exit %d, says %q, want %q", row.why, code, errOut, row.want)
		}
	}
}
