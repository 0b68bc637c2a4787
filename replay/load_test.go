package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"plimsoll/replay/cli"
	"plimsoll/replay/record"
	"plimsoll/replay/run"
)

// shaping is a flag with a value, and whether that shapes the load.
type shaping struct {
	args   []string
	shapes bool
}

func shapings(t *testing.T) map[string]shaping {
	const shapes, not = true, false
	return map[string]shaping{
		"Target":          {[]string{"--target", newSite(t).URL}, not},
		"ConnectTo":       {[]string{"--connect-to", strings.TrimPrefix(newSite(t).URL, "http://")}, not},
		"Insecure":        {[]string{"--insecure"}, not},
		"SourceAddress":   {[]string{"--source-address", "127.0.0.2"}, not},
		"TLSResume":       {[]string{"--no-tls-resume"}, shapes},
		"Root":            {[]string{"--root", t.TempDir()}, not},
		"Format":          {[]string{"--format", `%h %^[%d:%t %^] "%r" %s %b`}, shapes},
		"DateFormat":      {[]string{"--format", "COMBINED", "--date-format", "%d/%B/%Y"}, shapes},
		"TimeFormat":      {[]string{"--format", "COMBINED", "--time-format", "%H:%M:%S "}, shapes},
		"DatetimeFormat":  {[]string{"--format", "COMBINED", "--datetime-format", "%s"}, shapes},
		"TZ":              {[]string{"--format", "COMBINED", "--tz", "Europe/Berlin"}, shapes},
		"Config":          {[]string{"--config", writeText(t, "log-format COMMON\n")}, shapes},
		"StrictHosts":     {[]string{"--strict-hosts"}, shapes},
		"AllowRejects":    {[]string{"--allow-rejects"}, not},
		"AllowDuplicates": {[]string{"--allow-duplicates"}, not},
		"Clients":         {[]string{"--clients", "log"}, not}, // this log has no proxy
		"LogTime":         {[]string{"--log-time", "finished"}, shapes},
		"Speed":           {[]string{"--speed", "99"}, shapes},
		"Rate":            {[]string{"--speed", "1", "--rate", "100"}, shapes},
		"Users":           {[]string{"--users", "2"}, shapes},
		"RampUp":          {[]string{"--users", "2", "--ramp-up", "5ms"}, shapes},
		"Connections":     {[]string{"--speed", "max", "--connections", "3"}, shapes},
		"MaxGap":          {[]string{"--max-gap", "1h"}, shapes},
		"Burst":           {[]string{"--burst"}, shapes},
		"Seed":            {[]string{"--seed", "2"}, shapes},
		"Duration":        {[]string{"--duration", "1h"}, shapes},
		"Limit":           {[]string{"--limit", "2"}, shapes},
		"Loops":           {[]string{"--loops", "2"}, shapes},
		"From":            {[]string{"--from", "2026-11-20"}, shapes},
		"To":              {[]string{"--to", "2026-11-21"}, shapes},
		"Include":         {[]string{"--include", "^/"}, shapes},
		"Exclude":         {[]string{"--exclude", "^/never"}, shapes},
		"Methods":         {[]string{"--methods", "GET"}, shapes},
		"Header":          {[]string{"--header", "X-Test: 1"}, shapes},
		"Host":            {[]string{"--host", "target"}, shapes},
		"HeaderFile":      {[]string{"--header-file", writeText(t, "Cookie: secret=1\n")}, shapes},
		"Accounts":        {membersOf(t), shapes},
		"MembersMatch":    {append(membersOf(t)[:4], "--members-match", "^/"), shapes},
		"MembersShare":    {append(membersOf(t), "--members-share", "0.9"), shapes},
		"AllowLogins":     {[]string{"--allow-logins"}, not},
		"LoginPage":       {[]string{"--login-page", "/login"}, not},
		"AllowWrites":     {[]string{"--allow-writes"}, not},
		"ReplaceField":    {[]string{"--replace-field", "phone=0"}, shapes},
		"Unconditional":   {[]string{"--unconditional"}, shapes},
		"Timeout":         {[]string{"--timeout", "1s"}, shapes},
		"IdleTimeout":     {[]string{"--idle-timeout", "1s"}, shapes},
		"MaxConnections":  {[]string{"--max-connections", "28"}, shapes},
		"Route":           {[]string{"--route", "all=."}, not},
		"KeepGoing":       {[]string{"--keep-going"}, not},
		"FailOver":        {[]string{"--fail-over", "max=29s"}, not},
		"AbortOnFail":     {[]string{"--fail-over", "max=29s", "--abort-on-fail"}, not},
		"AbortAfter":      {[]string{"--fail-over", "max=29s", "--abort-on-fail", "--abort-after", "1s"}, not},
		"Metrics":         {[]string{"--metrics", freeAddress(t)}, not},
		"MetricsRemote":   {[]string{"--metrics", freeAddress(t), "--metrics-remote"}, not},
		"Out":             {nil, not}, // it is another one in every row
		"Backend":         {[]string{"--backend", "two"}, not},
		"Repeat":          {[]string{"--repeat", "2"}, not},
		"Warmup":          {[]string{"--warmup", "5ms"}, shapes},
		"GrinderLog":      {[]string{"--grinder-log"}, not},
		"HDRLog":          {[]string{"--hdr-log"}, not},
		"JSON":            {[]string{"--json"}, not},
		"Progress":        {[]string{"--progress"}, not},
		"Quiet":           {[]string{"--quiet"}, not},

		"ClientHeader":         {[]string{"--client-header", "X-Real-IP"}, shapes},
		"ConnectionsPerClient": {[]string{"--connections-per-client", "2"}, shapes},
	}
}

// TestEveryFlagOfARunIsInItsLoadOrNot runs the command once for each flag: those that shape load change the digest in
// run.json, all others do not.
func TestEveryFlagOfARunIsInItsLoadOrNot(t *testing.T) {
	rows := shapings(t)
	log := writeLog(t, threeLines("/a")...)
	base := loadOf(t, log)
	for name, row := range rows {
		if digest := loadOf(t, log, row.args...).Digest; (digest != base.Digest) != row.shapes {
			t.Errorf("%s (%s): the load is another one: %v, want %v", name, row.args, !row.shapes, row.shapes)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[run.Settings]()) {
		if _, ok := rows[field.Name]; !ok && !field.Anonymous && field.IsExported() && field.Name != "Logs" {
			t.Errorf("nobody has said whether %s shapes load: add a row here, and the flag to replay/run/settings.go", field.Name)
		}
	}
}

func TestLogsAreKnownByWhatIsInThem(t *testing.T) {
	log := writeLog(t, threeLines("/a")...)
	base := loadOf(t, log)
	for _, c := range []struct {
		why  string
		log  string
		same bool
	}{
		{"the same log under another name", writeText(t, strings.Join(threeLines("/a"), "")), true},
		{"packed", packed(t, strings.Join(threeLines("/a"), "")), true},
		{"another request", writeLog(t, threeLines("/b")...), false},
		{"one line fewer", writeLog(t, threeLines("/a")[:2]...), false},
	} {
		if got := loadOf(t, c.log); (got.Digest == base.Digest) != c.same {
			t.Errorf("%s: %v, and %v", c.why, got.Settings["logs"], base.Settings["logs"])
		}
	}
	var first struct {
		SHA256 string `json:"sha256"`
		Lines  int    `json:"lines"`
		First  string `json:"first"`
	}
	text, _ := json.Marshal(base.Settings["logs"].([]any)[0])
	if err := json.Unmarshal(text, &first); err != nil {
		t.Fatal(err)
	}
	const sum = "3a0160627f582726ccffef5572634bb8586c0ac953c3cd3e709952e03387dabf" // sha256sum access.log
	if first.SHA256 != sum || first.Lines != 3 || first.First != "2026-11-20T10:00:00.000000Z" {
		t.Errorf("%s", text)
	}
}

// TestAProxysAddressIsSaidAndKept: before the run, with a format that does better, and in run.json.
func TestAProxysAddressIsSaidAndKept(t *testing.T) {
	var lines []string
	for i := range 300 {
		line := logLine(i/12, fmt.Sprintf("GET /p%d HTTP/1.1", i%20), "UA")
		_, rest, _ := strings.Cut(line, " ")
		lines = append(lines, "10.0.0.1 "+strings.TrimSuffix(rest, "\n")+fmt.Sprintf(" \"203.0.113.%d\"\n", i%200))
	}
	log, site := writeLog(t, lines...), newSite(t)
	const format = `Take it with --format '%^ %^[%d:%t %^] "%r" %s %b "%R" "%u" "~h{, }"'`
	for _, row := range []struct {
		says, before, load string
		args               []string
		spread             bool
	}{
		{"spread", "10.0.0.1 looks like a proxy's address, with 100 % of the requests from many visitors: its requests are spread over 42 clients",
			"proxies' spread over 42", nil, true},
		{"kept", "--clients log sends them as the log's own clients, with 2 connections each", "log", []string{"--clients", "log", "--connections-per-client", "2"}, false},
	} {
		out := t.TempDir()
		code, _, errOut := call(append([]string{"run", log, "--target", site.URL, "--out", out, "--speed", "100", "--timeout", "300ms"}, row.args...)...)
		got := latest(t, out).Run
		if code != 0 || !strings.Contains(errOut, row.before) || !strings.Contains(errOut, format) {
			t.Errorf("%s: exit %d: %s", row.says, code, errOut)
		}
		if got.Load.Settings["clients"] != row.load || got.Clients.Proxies != 1 || got.Clients.Counted != 1 || (got.Clients.SpreadOver != nil) != row.spread {
			t.Errorf("%s: %+v, %v", row.says, *got.Clients, got.Load.Settings["clients"])
		}
	}
	if _, _, errOut := runParse("", "--stats", log); !strings.Contains(errOut, format) {
		t.Error(errOut)
	}
}

func TestTheLoadHoldsNoSecret(t *testing.T) {
	load := loadOf(t, writeLog(t, threeLines("/a")...), "--header-file", writeText(t, "Cookie: secret=1\nX-A: b\n"))
	text, err := json.Marshal(load)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret=1") || !strings.Contains(string(text), `"cookie":"`) {
		t.Errorf("%s", text)
	}
	if load.Settings["timeout_s"] != 30.0 || load.Settings["program"] != "replay" || load.Settings["program_version"] != cli.Version {
		t.Errorf("%s", text)
	}
}

// loadOf is the load in run.json of a run of this log.
func loadOf(t *testing.T, log string, args ...string) *record.Load {
	t.Helper()
	out := t.TempDir()
	command := []string{"run", log, "--out", out, "--speed", "100"}
	if !strings.Contains(fmt.Sprint(args), "--target") {
		command = append(command, "--target", newSite(t).URL)
	}
	if code, _, errOut := call(append(command, args...)...); code != 0 {
		t.Fatalf("%s: exit %d: %s", args, code, errOut)
	}
	load := latest(t, out).Run.Load
	if load == nil {
		t.Fatal("run.json has no load")
	}
	return load
}

// membersOf has the flags of a run with members, all clients of the log.
func membersOf(t *testing.T) []string {
	return []string{"--target", newClub(t, false).URL, "--accounts", accountsFile(t, 1), "--members-share", "1"}
}

func threeLines(target string) []string {
	var lines []string
	for i := range 3 {
		lines = append(lines, logLine(i, "GET "+target+" HTTP/1.1", "UA"))
	}
	return lines
}

func writeText(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return writeText(t, out.String())
}
