package record

import (
	"encoding/json"
	"os"
	"testing"
)

// TestFailed holds the rule to the rows that Python's tests have too.
func TestFailed(t *testing.T) {
	for _, row := range readRows[struct {
		Says         string
		Status       uint16
		LoggedStatus uint16 `json:"logged_status"`
		Error        ErrorKind
		Failed       bool
	}](t, "failures.json") {
		r := Record{Status: row.Status, LoggedStatus: row.LoggedStatus, Error: row.Error}
		if r.Failed() != row.Failed {
			t.Errorf("%s: failed: %v, want %v", row.Says, r.Failed(), row.Failed)
		}
	}
}

// TestLimited does so for when a generator is too late to measure by.
func TestLimited(t *testing.T) {
	for _, row := range readRows[struct {
		Says       string
		LagMS      *float64 `json:"lag_ms"`
		ResponseMS *float64 `json:"response_ms"`
		Limited    bool
	}](t, "lateness.json") {
		if got, reason := limited(row.LagMS, row.ResponseMS); got != row.Limited || (reason != "") != got {
			t.Errorf("%s: %v, %q, want %v", row.Says, got, reason, row.Limited)
		}
	}
}

// readRows reads a table of tests/fixtures/.
func readRows[Row any](t *testing.T, name string) (rows []Row) {
	t.Helper()
	text, err := os.ReadFile("../../tests/fixtures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 10 {
		t.Fatalf("%s: %d rows: %v", name, len(rows), err)
	}
	return rows
}
