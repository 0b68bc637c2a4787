package accesslog

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedFormats: each specifier is in docs/log-formats.md, whose tables of formats `make docs` writes.
func TestDocumentedFormats(t *testing.T) {
	text, err := os.ReadFile("../../docs/log-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, spec := range specifiers {
		if !strings.Contains(doc, "`%"+string(spec.letter)+"`") {
			t.Errorf("%%%c is not documented", spec.letter)
		}
	}
}
