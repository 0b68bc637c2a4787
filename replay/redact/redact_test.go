package redact

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestArgs holds the redaction to a table that Python's is held to as well.
func TestArgs(t *testing.T) {
	text, err := os.ReadFile("../../tests/fixtures/secrets.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Why, Text, Kept string }
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 40 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		if got := Args([]string{row.Text}); got[0] != row.Kept {
			t.Errorf("%s: %q became %q, want %q", row.Why, row.Text, got[0], row.Kept)
		}
		if strings.HasPrefix(row.Text, "-") {
			continue // a flag is no header
		}
		if got := HoldsSecret(row.Text); got != (row.Text != row.Kept) && strings.Contains(row.Text, ": ") {
			t.Errorf("%s: %q holds a secret: %v", row.Why, row.Text, got)
		}
	}
	if HoldsSecret("Cookie:") {
		t.Error("taking a header away shows no secret")
	}
}

func TestArgsLeavesItsArgumentsAlone(t *testing.T) {
	args := []string{"Cookie: a"}
	before := slices.Clone(args)
	if Args(args); !slices.Equal(args, before) {
		t.Errorf("arguments became %q", args)
	}
}
