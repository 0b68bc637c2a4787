package record

import (
	"encoding/json"
	"os"
	"testing"
)

// TestFailed holds the rule to the rows that Python's tests have too.
func TestFailed(t *testing.T) {
	text, err := os.ReadFile("../../tests/fixtures/failures.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Says         string
		Status       uint16
		LoggedStatus uint16 `json:"logged_status"`
		Error        ErrorKind
		Failed       bool
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 10 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, row := range rows {
		r := Record{Status: row.Status, LoggedStatus: row.LoggedStatus, Error: row.Error}
		if r.Failed() != row.Failed {
			t.Errorf("%s: failed: %v, want %v", row.Says, r.Failed(), row.Failed)
		}
	}
}
