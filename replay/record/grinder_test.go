package record

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
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
