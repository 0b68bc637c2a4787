package accesslog

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedFormats holds docs/log-formats.md against the code.
func TestDocumentedFormats(t *testing.T) {
	text, err := os.ReadFile("../../docs/log-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, p := range presets {
		row := "| `" + p.name + "` | `" + strings.ReplaceAll(p.log, "\t", `\t`) + "` |"
		if strings.HasPrefix(p.log, "{") {
			row = "| `" + p.name + "` | JSON"
		}
		if !strings.Contains(doc, row) {
			t.Errorf("%s is not documented as it is: %s", p.name, row)
		}
	}
	for _, l := range lookalikes {
		if !strings.Contains(doc, "`"+l.log+"`") {
			t.Errorf("%s: %s is not documented", l.name, l.log)
		}
	}
	for _, spec := range specifiers {
		if !strings.Contains(doc, "`%"+string(spec)+"`") {
			t.Errorf("%%%c is not documented", spec)
		}
	}
	_, table, _ := strings.Cut(doc, "### Formats that are no presets")
	table, _, _ = strings.Cut(table, "## Specifiers")
	rows := regexp.MustCompile("(?m)\\| `(.+)` \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) < 5 {
		t.Error("the table of formats is gone")
	}
	for _, row := range rows {
		if _, err := Compile(Spec{Log: row[1]}); err != nil {
			t.Errorf("documented, but: %v", err)
		}
	}
}
