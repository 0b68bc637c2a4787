package traffic

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/record"
	"plimsoll/replay/route"
)

// Formats of logs with durations: nginx's $request_time after the line, Apache's %D.
const (
	nginxTimed  = `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T`
	apacheTimed = `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %D`
	exactTimed  = `%h %^[%x] "%r" %s %b "%R" "%u" %T` // nginx with $msec
)

// servedOf reads the lines of some files in a format as what was served.
func servedOf(t testing.TB, plan Plan, format string, files ...string) (*ImportedLog, []record.Record, skips) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, text := range files {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("log.%d", i)))
		if err := os.WriteFile(paths[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := Open(context.Background(), paths, nil, Reading{Spec: accesslog.Spec{Log: format}})
	if err != nil {
		t.Skip(err) // of a fuzzed log
	}
	skipped := skips{}
	served := New(plan, logs, skipped, route.New(nil)).Imported()
	var records []record.Record
	if err := served.Each(context.Background(), func(r *record.Record) { records = append(records, *r) }); err != nil {
		t.Fatal(err)
	}
	return served, records, skipped
}

type skips map[string]uint64

func (s skips) Skip(reason string)            { s.SkipN(reason, 1) }
func (s skips) SkipN(reason string, n uint64) { s[reason] += n }

func timedLine(at, request string, status int, took string) string {
	return fmt.Sprintf("192.0.2.7 - - [%s] \"%s\" %d 5 \"-\" \"UA\" %s\n", at, request, status, took)
}

func TestServed(t *testing.T) {
	second := func(n int) string { return fmt.Sprintf("20/Nov/2026:12:00:%02d +0000", n) }
	const get = "GET / HTTP/1.1"
	rows := []struct {
		why     string
		format  string
		plan    Plan
		files   []string
		want    string // due and total in ms, by line
		skipped map[string]uint64
	}{
		{
			"nginx logs the end: a request began its duration earlier", exactTimed, Plan{},
			[]string{timedLine("1795000010.500", get, 200, "0.250") + timedLine("1795000011.000", get, 200, "1.000")},
			"2: 0 1000, 1: 250 250", nil,
		},
		{
			"Apache logs the start: what began last may be done first", apacheTimed, Plan{Burst: true},
			[]string{timedLine(second(1), get, 200, "2500000") + timedLine(second(2), get, 200, "1000")},
			"1: 0 2500, 2: 1000 1", nil,
		},
		{
			"what has no duration is left out, and counted", nginxTimed, Plan{Burst: true},
			[]string{timedLine(second(1), get, 200, "0.000") + timedLine(second(2), get, 200, "-")},
			"1: 0 0", map[string]uint64{SkipUntimed: 1},
		},
		{
			"a connection that became another has no response time", nginxTimed, Plan{Burst: true},
			[]string{timedLine(second(1), get, 101, "3600.000") + timedLine(second(1), "CONNECT a.example:443 HTTP/1.1", 200, "9.000") +
				timedLine(second(2), get, 200, "0.001")},
			"3: 0 1", map[string]uint64{SkipTunnel: 2},
		},
		{
			"a line that a replay cannot send is none here either, but a POST is", nginxTimed, Plan{Burst: true},
			[]string{timedLine(second(1), `\x16\x03\x01`, 400, "0.100") + timedLine(second(1), "POST /x HTTP/1.1", 200, "0.100")},
			"2: 0 100", map[string]uint64{SkipNotHTTP: 1},
		},
		{
			"a download that began an hour before the log began stands at its begin, and took what it took", nginxTimed, Plan{Burst: true},
			[]string{timedLine(second(1), get, 200, "3600.000") + timedLine(second(2), get, 200, "0.000")},
			"1: 0 3600000, 2: 61000 0", nil,
		},
		{
			"files of one time are interleaved", exactTimed, Plan{},
			[]string{timedLine("1795000010.000", get, 200, "0.000") + timedLine("1795000012.000", get, 200, "0.000"), timedLine("1795000011.000", get, 200, "0.000")},
			"1: 0 0, 1/1: 1000 0, 2: 2000 0", nil,
		},
		{
			"from and to are of the begin", exactTimed,
			Plan{From: time.Unix(1795000010, 0), To: time.Unix(1795000012, 0)},
			[]string{timedLine("1795000010.500", get, 200, "0.750") + timedLine("1795000012.500", get, 200, "1.500") + timedLine("1795000013.000", get, 200, "0.500")},
			"2: 0 1500", nil,
		},
		{
			"a duration beyond what a record holds is cut off there", nginxTimed, Plan{Burst: true},
			[]string{timedLine(second(1), get, 200, "9000000000") + timedLine(second(1), get, 200, "0")},
			"1: 0 4294967, 2: 60000 0", nil,
		},
	}
	for _, row := range rows {
		_, records, skipped := servedOf(t, row.plan, row.format, row.files...)
		var got []string
		for _, r := range records {
			file, line := int(r.Line>>48), r.Line&(1<<48-1)
			name := fmt.Sprint(line)
			if file > 0 {
				name += fmt.Sprintf("/%d", file)
			}
			got = append(got, fmt.Sprintf("%s: %d %d", name, r.DueNS/1e6, r.TotalUS/1000))
			if r.LagUS != 0 || r.LoggedStatus != 0 || r.LoggedBytes != -1 || r.Bytes != 5 || r.Error != record.None {
				t.Errorf("%s: %+v", row.why, r)
			}
		}
		slices.Sort(got)
		want := strings.Split(row.want, ", ")
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", row.why, got, want)
		}
		for reason, n := range row.skipped {
			if skipped[reason] != n {
				t.Errorf("%s: %v, want %v", row.why, skipped, row.skipped)
			}
		}
	}
}

func TestServedSaysHowFineItsDurationsAre(t *testing.T) {
	for _, row := range []struct {
		took string
		want time.Duration
	}{{"3", time.Second}, {"3.000", time.Second}, {"0.250", time.Millisecond}, {"0.000250", time.Microsecond}, {"0.0000005", time.Nanosecond}} {
		served, _, _ := servedOf(t, Plan{}, exactTimed, timedLine("1795000010.000", "GET / HTTP/1.1", 499, row.took))
		if served.Finest != row.want || served.GivenUp != 1 {
			t.Errorf("%s s is a multiple of %v, want %v; %d given up", row.took, served.Finest, row.want, served.GivenUp)
		}
	}
}

// A log that is longer than the window: nothing is lost, and all is in the order in which it was done.
func TestServedIsInTheOrderInWhichItWasDone(t *testing.T) {
	var text strings.Builder
	const n = sortWindow + 5000
	for i := range n {
		text.WriteString(timedLine(fmt.Sprintf("%.3f", 1795000000+float64(i)/100), "GET / HTTP/1.1", 200, fmt.Sprintf("%d", i*7919%3000000)))
	}
	_, records, _ := servedOf(t, Plan{}, strings.ReplaceAll(strings.ReplaceAll(apacheTimed, "%d:%t %^", "%x"), "%T", "%D"), text.String())
	if len(records) != n {
		t.Fatalf("%d records of %d", len(records), n)
	}
	if !slices.IsSortedFunc(records, func(a, b record.Record) int { return int(a.DoneNS() - b.DoneNS()) }) {
		t.Error("not in the order in which they were done")
	}
}

// FuzzServed reads nonsense as what was served: each request is a record or is counted, no instant lies before the run,
// and no duration is another than the log's.
func FuzzServed(f *testing.F) {
	for _, took := range []string{"0.250", "-", "9e300", "1e-9", "-1", "99999999999999999999"} {
		f.Add([]byte(timedLine("20/Nov/2026:12:00:01 +0000", "GET / HTTP/1.1", 200, took)), uint8(0))
		f.Add([]byte(timedLine("01/Jan/1970:00:00:00 +0000", "CONNECT / HTTP/2", 101, took)), uint8(1))
		f.Add([]byte(timedLine("31/Dec/2261:00:00:00 +0000", "POST", 499, took)+timedLine("1", "GET /", 500, took)), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		if len(bytes.TrimSpace(text)) == 0 || bytes.IndexByte(text, 0) >= 0 {
			t.Skip() // opened as nothing, or as something packed
		}
		format := []string{nginxTimed, apacheTimed, exactTimed}[which%3]
		served, records, skipped := servedOf(t, Plan{Seed: int64(which)}, format, string(text))
		if served.Records != uint64(len(records)) {
			t.Errorf("%d records are said to be %d", len(records), served.Records)
		}
		for reason := range skipped {
			if reason != SkipNotHTTP && reason != SkipTunnel && reason != SkipUntimed {
				t.Errorf("left out for %q", reason)
			}
		}
		for _, r := range records {
			if r.DueNS < 0 || r.DueNS > math.MaxInt64-int64(r.TotalUS)*1000 || r.Bytes < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
