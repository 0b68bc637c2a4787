package record

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/replay/redact"
	"plimsoll/replay/served"
)

// update rewrites the golden files: go test ./record -update
var update = flag.Bool("update", false, "rewrite the golden files")

// Run directories that the Python side's tests read, too: one that this program writes, and the same run as it was written
// in format 1.
const (
	fixtureDir   = "../../tests/fixtures/run-go-v2"
	fixtureDirV1 = "../../tests/fixtures/run-go"
)

var fixtureStart = time.Date(2026, time.November, 20, 23, 8, 0, 123456000, time.UTC)

// fixtureRun says the same on every machine.
func fixtureRun() Run {
	load, err := NewLoad(map[string]any{
		"program": "replay", "program_version": "0.1.0", "timeout_s": 30.0, "max_connections": nil, "include": []string{"^/<a>&"},
		"headers": map[string]string{"authorization": Digest([]byte("Basic c2VjcmV0"))},
	})
	if err != nil {
		panic(err)
	}
	logStart := Instant{time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)}
	return Run{
		Scenario: "replay",
		Target:   Target{URL: "http://127.0.0.1:8080", Addresses: []string{"127.0.0.1:8080"}},
		Command:  redact.Args([]string{"bin/replay", "run", "--header", "Authorization: Basic c2VjcmV0", "access.log"}),
		Seed:     1, Speed: "1", WarmupS: 0.5, LogStart: logStart,
		Logs: []Log{{Path: "access.log", Format: "COMBINED", Lines: 1340, Valid: 1335, Failed: 2, Ignored: 3,
			First: logStart, Last: Instant{logStart.Add(7 * time.Second)}}},
		Program: Program{Name: "replay", Version: "0.1.0", Go: "go1.26.0"},
		Host:    Host{Hostname: "generator", Kernel: "6.12.0", CPU: "a processor", CPUs: 2, MemoryBytes: 4 << 30},
		Load:    load,
	}
}

// fixtureRecords are 1,300 requests at 200/s with some of everything: errors of each kind, mismatches, queued and
// warm-up requests, reused and new connections.
func fixtureRecords() []Record {
	r := rand.New(rand.NewPCG(2026, 11))
	records := make([]Record, 1300)
	for i := range records {
		p := &records[i]
		*p = Record{
			DueNS: int64(i) * 5_000_000, LagUS: uint32(r.Uint64N(90)), TotalUS: uint32(800 + r.ExpFloat64()*1500),
			LoggedBytes: int64(r.Uint64N(60_000)), Line: PackLine(0, uint64(i)+1), Client: uint32(r.Uint64N(40)) * 2654435761,
			Route: uint16(r.Uint64N(4)), Status: 200, LoggedStatus: 200, Flags: Reused,
		}
		p.TTFBUS, p.Bytes = p.TotalUS/2, p.LoggedBytes
		switch {
		case i < 100:
			p.Flags |= Warmup
		case i%97 == 0:
			p.Error = ErrorKind(1 + i/97%(len(errorNames)-1))
			p.Status, p.Bytes, p.TTFBUS = 0, 0, 0
		case i%50 == 0:
			p.Flags, p.ConnectUS, p.TLSUS = TLS|HTTP2, 300, 900
		case i%41 == 0:
			p.Status = 404
		case i%43 == 0:
			p.Bytes += 7
		case i%31 == 0:
			p.Flags |= Queued
			p.LagUS = 20_000
			p.LateUS = 60
		}
		p.Served, p.Page, p.PausedUS = served.By(i%5), uint32(i/10), uint32(i%7)
	}
	return records
}

// writeFixture writes the run at dir with a clock of its own.
func writeFixture(t *testing.T, dir string) Summary {
	t.Helper()
	now := fixtureStart
	d, err := Create(dir, fixtureRun(), Options{GrinderLog: true, HDRLog: true, now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	d.SetRoutes(func() []string { return []string{"page", "image", "css-js", "other"} })
	if err := d.Start(fixtureStart); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"\x1b[31mred\x07 <script>alert(1)</script>", `127.0.0.1 - - [half a "line\`} {
		d.Reject(Reject{File: "access.log", Line: uint64(17 + i), Specifier: "%h", Column: 1, Why: "not a host", Text: []byte(text)})
	}
	d.Event(Event{TNS: 500_000_000, Name: "warm-up", Phase: "stop"})
	d.SkipN("method_not_allowed", 32)
	d.Skip("unsafe_target")
	d.Unsent(2)
	d.Retried()
	for _, r := range fixtureRecords() {
		d.Add(&r)
	}
	now = fixtureStart.Add(6510 * time.Millisecond)
	s, err := d.Close(Complete, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Files of the fixture that are compared byte by byte. latency.hlog is compressed, and what it decodes to is
// looked at elsewhere, since another Go may compress better.
var fixtureFiles = []string{"run.json", "requests.npy", "routes.json", "errors.json", "events.jsonl", "summary.json",
	"grinder-0-data.log", "rejects.log"}

func TestRunDirectoryIsTheGoldenOne(t *testing.T) {
	if *update {
		if err := os.RemoveAll(fixtureDir); err != nil {
			t.Fatal(err)
		}
		writeFixture(t, fixtureDir)
	}
	dir := filepath.Join(t.TempDir(), "run")
	if s := writeFixture(t, dir); s.Records != sumOfRecords(t, dir) {
		t.Errorf("the sum of the records is %s, and theirs %s", s.Records, sumOfRecords(t, dir))
	}
	for _, name := range fixtureFiles {
		golden(t, filepath.Join(fixtureDir, name), readFile(t, filepath.Join(dir, name)))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(fixtureFiles)+1 {
		t.Errorf("the directory holds %v, want %v and latency.hlog", entries, fixtureFiles)
	}
}

func TestTableIsTheGoldenOne(t *testing.T) {
	s := writeFixture(t, filepath.Join(t.TempDir(), "run"))
	path := filepath.Join(t.TempDir(), "table")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s.WriteText(f)
	fmt.Fprintln(f)
	Summary{}.WriteText(f) // of nothing, for the dashes
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/table.txt", []byte(readFile(t, path)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "testdata/table.txt", readFile(t, path))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: make the golden files with `go test ./record -update`", err)
	}
	if got != string(want) {
		t.Errorf("%s has changed; if that is meant, run `go test ./record -update`. Got:\n%.3000q", path, got)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// readRows reads a table of tests/fixtures/ that Python's tests read, too. It has so many rows at least.
func readRows[Row any](t *testing.T, name string, least int) (rows []Row) {
	t.Helper()
	text, err := os.ReadFile("../../tests/fixtures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < least {
		t.Fatalf("%s: %d rows: %v", name, len(rows), err)
	}
	return rows
}
