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
