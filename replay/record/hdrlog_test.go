package record

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func TestGrinderLines(t *testing.T) {
	started := time.UnixMilli(1_000_000).Add(999 * time.Microsecond)
	for _, c := range []struct {
		why  string
		r    Record
		want string
	}{
		{"a success on a used connection",
			Record{DueNS: 5e6, LagUS: 1, TotalUS: 12_999, TTFBUS: 3_100, Bytes: 512, Status: 200, Flags: Reused},
			"0, 0, 1, 1000006, 12, 0, 200, 512, 0, 0, 0, 3, 0"},
		{"a new connection's times include each other",
			Record{DNSUS: 2_000, ConnectUS: 3_000, TLSUS: 4_000, TTFBUS: 12_000, TotalUS: 20_000, Bytes: 7, Status: 200, Route: 4},
			"0, 0, 5, 1000000, 20, 0, 200, 7, 0, 2, 9, 12, 1"},
		{"a status of 404 is a response error and a test without error",
			Record{TotalUS: 1_000, Status: 404, Flags: Reused}, "0, 0, 1, 1000000, 1, 0, 404, 0, 1, 0, 0, 0, 0"},
		{"a time-out is an error of the test", Record{TotalUS: 30_000_000, Error: Timeout},
			"0, 0, 1, 1000000, 30000, 1, 0, 0, 0, 0, 0, 0, 1"},
		{"clients share a thousand threads", Record{Client: 123_456, Status: 200}, "456, 0, 1, 1000000, 0, 0, 200, 0, 0, 0, 0, 0, 1"},
	} {
		if got := string(appendGrinderLine(nil, &c.r, started)); got != c.want+"\n" {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
	if columns, fields := strings.Count(grinderHeader, ","), strings.Count(string(appendGrinderLine(nil, &Record{}, started)), ","); columns != fields {
		t.Errorf("the header has %d commas, a line %d", columns, fields)
	}
}

func TestDataLogHasItsHeaderWithoutRequests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{GrinderLog: true, HDRLog: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Close(Complete, ""); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(dir, "grinder-0-data.log")); got != grinderHeader {
		t.Errorf("data log of nothing is %q", got)
	}
}

func TestHDRLogHoldsTheRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	writeFixture(t, dir)
	for _, path := range []string{dir, fixtureDir} {
		checkHDRLog(t, filepath.Join(path, "latency.hlog"))
	}
}

func checkHDRLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var response, service histogram // failures as they were: the log is raw
	for _, r := range fixtureRecords() {
		if r.Flags&Warmup == 0 {
			response.add(r.ResponseUS())
			service.add(uint64(r.TotalUS))
		}
	}
	totals := map[string]*hdr.Histogram{}
	lines := hdr.NewHistogramLogReader(bytes.NewReader(text))
	for {
		h, err := lines.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		if totals[h.Tag()] == nil {
			totals[h.Tag()] = hdr.New(1, hdrMaxUS, hdrDigits)
		}
		totals[h.Tag()].Merge(h)
	}
	for tag, want := range map[string]*histogram{"response": &response, "service": &service} {
		h := totals[tag]
		if h == nil {
			t.Fatalf("%s: no tag %s", path, tag)
		}
		if h.TotalCount() != int64(want.n) {
			t.Errorf("%s: %s has %d values, want %d", path, tag, h.TotalCount(), want.n)
		}
		// Three digits: within a thousandth.
		got, median := float64(h.ValueAtQuantile(50)), float64(want.at(p50.rank(want.n)))
		if got < median*0.999 || got > median*1.001 {
			t.Errorf("%s: median of %s is %v µs, want %v", path, tag, got, median)
		}
	}
}

// TestHDRLogIsThatOfTheTable: the same file is read by tests/unit/exchange/test_hdr.py.
func TestHDRLogIsThatOfTheTable(t *testing.T) {
	text, err := os.ReadFile("../../tests/fixtures/hdr.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Started time.Time `json:"started_at"`
		Records []struct {
			DueNS   int64  `json:"due_ns"`
			LagUS   uint32 `json:"lag_us"`
			TotalUS uint32 `json:"total_us"`
			Warmup  bool
		}
		Lines []string
	}
	if err := json.Unmarshal(text, &table); err != nil || len(table.Records) < 10 {
		t.Fatalf("%d records: %v", len(table.Records), err)
	}
	var records []Record
	for _, row := range table.Records {
		r := Record{DueNS: row.DueNS, LagUS: row.LagUS, TotalUS: row.TotalUS}
		if row.Warmup {
			r.Flags = Warmup
		}
		records = append(records, r)
	}
	log := newHDRLog()
	written := bytes.Clone(log.lines(records, table.Started)) // the log writes over it
	written = append(written, log.end(table.Started)...)
	var lines []string
	for line := range strings.Lines(string(written)) {
		line = strings.TrimSuffix(line, "\n")
		if head, payload, found := cutLast(line, ","); found && strings.HasPrefix(line, "Tag=") {
			line = head + "," + unpackedHDR(t, payload)
		}
		lines = append(lines, line)
	}
	if !slices.Equal(lines, table.Lines) {
		t.Errorf("%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(table.Lines, "\n"))
	}
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}

// unpackedHDR returns a histogram without base 64, its header of 8 bytes and zlib, in hexadecimal.
func unpackedHDR(t *testing.T, payload string) string {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(data)
}

func TestRejectsAreHarmlessLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		why  string
		r    Reject
		want string
	}{
		{"a plain line stays as it is", Reject{"access.log", 3, "%h", 1, "not a host", []byte(`a "b" c`)},
			`access.log:3:1: %h: not a host: a "b" c` + "\n"},
		{"line feeds and escape sequences are spelled out", Reject{"a\nb", 1, "%t", 5, "bad", []byte("x\r\n\x1b]0;t\x07\x00\xff")},
			`a\nb:1:5: %t: bad: x\r\n\x1b]0;t\a\x00\xff` + "\n"},
		{"a line without a specifier", Reject{File: "-", Line: 9, Why: "too long"}, "-:9:0: too long: \n"},
		{"writing from right to left is spelled out", Reject{File: "-", Line: 9, Why: "no", Text: []byte("a\u202eb")},
			`-:9:0: no: a\u202eb` + "\n"},
		{"a long line is cut", Reject{File: "-", Line: 9, Why: "no", Text: []byte(long)},
			"-:9:0: no: " + long[:maxRejectBytes] + "… (1048576 bytes)\n"},
	} {
		if got := c.r.line(); got != c.want {
			t.Errorf("%s: got %.200q, want %.200q", c.why, got, c.want)
		}
	}
}

func TestOnlyTheFirstRejectsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := Create(dir, Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		d.Reject(Reject{File: "log", Line: uint64(i), Why: "no host"})
	}
	if _, err := d.Close(Complete, ""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(readFile(t, filepath.Join(dir, "rejects.log")), "\n"); got != maxRejects {
		t.Errorf("%d lines, want %d", got, maxRejects)
	}
}

func TestEventLines(t *testing.T) {
	for _, c := range []struct {
		why  string
		e    Event
		want string
	}{
		{"an event with a phase", Event{TNS: 5, Name: "zfs-send", Phase: "start"}, `{"t_ns":5,"event":"zfs-send","phase":"start"}`},
		{"one without", Event{Name: "interrupt"}, `{"t_ns":0,"event":"interrupt"}`},
		{"its own keys come last, by name", Event{Name: "e", More: map[string]any{"b": 2, "a": "x\ny"}}, `{"t_ns":0,"event":"e","a":"x\ny","b":2}`},
	} {
		if got, err := c.e.MarshalJSON(); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.why, got, err, c.want)
		}
	}
	if _, err := (Event{More: map[string]any{"f": func() {}}}).MarshalJSON(); err == nil {
		t.Error("a function was written as JSON")
	}
}

func TestTimesInASentence(t *testing.T) {
	for ms, want := range map[float64]string{
		0.1234: "0.123 ms", 144: "144 ms", 999.4: "999 ms", 999.6: "1.00 s", 1970: "1.97 s", 39_260: "39.3 s", 1_234_567: "1235 s",
	} {
		if got := roundedTime(ms); got != want {
			t.Errorf("%v ms: %q instead of %q", ms, got, want)
		}
	}
}
