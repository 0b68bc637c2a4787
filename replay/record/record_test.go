package record

import (
	"math"
	"math/rand/v2"
	"testing"

	"plimsoll/replay/served"
)

// randomRecord fills every field with bits of its whole range.
func randomRecord(r *rand.Rand) Record {
	record := Record{
		DueNS: int64(r.Uint64()), LagUS: r.Uint32(), DNSUS: r.Uint32(), ConnectUS: r.Uint32(), TLSUS: r.Uint32(),
		TTFBUS: r.Uint32(), TotalUS: r.Uint32(), Bytes: int64(r.Uint64()), LoggedBytes: int64(r.Uint64()), Line: r.Uint64(),
		Client: r.Uint32(), Route: uint16(r.Uint32()), Status: uint16(r.Uint32()), LoggedStatus: uint16(r.Uint32()),
		Error: ErrorKind(r.Uint32()), Flags: Flags(r.Uint32()),
		LateUS: r.Uint32(), Served: served.By(r.Uint32()), Page: r.Uint32(), PausedUS: r.Uint32(),
	}
	record.LateUS = record.GeneratorLateUS()
	return record
}

func TestPackedRecordsReadBackAsTheyWere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		want := randomRecord(r)
		var packed [Size]byte
		want.put(&packed)
		var got Record
		got.get(packed[:])
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func TestColumnsFillTheRecord(t *testing.T) {
	for _, format := range []struct {
		columns, size int
		header        string
	}{{columnsV1, sizeV1, headerTextV1}, {len(columns), Size, headerText}} {
		total := 0
		for _, c := range columns[:format.columns] {
			total += int(c[1][2] - '0')
		}
		if total != format.size {
			t.Errorf("%d columns take %d bytes, a record %d", format.columns, total, format.size)
		}
		if len(format.header) != headerSize {
			t.Errorf("the header of %d columns takes %d bytes, want %d", format.columns, len(format.header), headerSize)
		}
	}
}

func TestSaturatedUS(t *testing.T) {
	for _, c := range []struct {
		why  string
		ns   int64
		want uint32
	}{
		{"less than a microsecond is none", 999, 0},
		{"microseconds are cut off, not rounded", 1999, 1},
		{"a clock that went back counts as no time", -5000, 0},
		{"the longest time that fits", (1<<32 - 1) * 1000, math.MaxUint32},
		{"longer times are saturated", 1 << 32 * 1000, math.MaxUint32},
		{"the longest time of all too", math.MaxInt64, math.MaxUint32},
	} {
		if got := SaturatedUS(c.ns); got != c.want {
			t.Errorf("%s: SaturatedUS(%d) = %d, want %d", c.why, c.ns, got, c.want)
		}
	}
}

func TestResponseTimeDoesNotOverflow(t *testing.T) {
	r := Record{LagUS: math.MaxUint32, TotalUS: math.MaxUint32}
	if got, want := r.ResponseUS(), uint64(2*math.MaxUint32); got != want {
		t.Errorf("response of two saturated times = %d, want %d", got, want)
	}
}

func TestLinesArePackedWithTheirFile(t *testing.T) {
	for _, c := range []struct {
		file int
		line uint64
	}{{0, 1}, {1, 1}, {65535, 1<<48 - 1}, {7, 123456789}} {
		packed := PackLine(c.file, c.line)
		file, line := int(packed>>lineBits), packed&(1<<lineBits-1)
		if file != c.file || line != c.line {
			t.Errorf("file %d, line %d came back as %d, %d", c.file, c.line, file, line)
		}
	}
}

func TestErrorKindsHaveTheNamesOfTheFormat(t *testing.T) {
	if got := ErrorNames(); got[None] != "none" || got[H2Refused] != "h2_refused" || got[len(got)-1] != "other" {
		t.Errorf("names of errors are %q", got)
	}
	if got := ErrorKind(200).String(); got != "other" {
		t.Errorf("an unknown kind is %q, want other", got)
	}
}

// TestFailed holds the rule to the rows that Python's tests read, too.
func TestFailed(t *testing.T) {
	for _, row := range readRows[struct {
		Says         string
		Status       uint16
		LoggedStatus uint16 `json:"logged_status"`
		Error        ErrorKind
		Failed       bool
	}](t, "failures.json", 15) {
		r := Record{Status: row.Status, LoggedStatus: row.LoggedStatus, Error: row.Error}
		if r.Failed() != row.Failed {
			t.Errorf("%s: failed: %v, want %v", row.Says, r.Failed(), row.Failed)
		}
	}
}
