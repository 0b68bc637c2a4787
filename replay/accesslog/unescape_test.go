package accesslog

import "testing"

func TestUnescape(t *testing.T) {
	for _, c := range []struct {
		why     string
		style   Escape
		in, out string
	}{
		{"Apache escapes quotes, backslashes and control characters", EscapeBackslash, `a\"b\\c\n\t\r\x1b`, "a\"b\\c\n\t\r\x1b"},
		{"nginx escapes all of them as hex", EscapeBackslash, `\x22\x5C\xC3\xA9`, "\"\\é"},
		{"Traefik is written in Go", EscapeBackslash, `\u00e9`, "é"},
		{"what is no escape stays", EscapeBackslash, `C:\dir\xZZ\u12 \`, `C:\dir\xZZ\u12 \`},
		{"a plus sign is a space to IIS", EscapePlus, "Mozilla/5.0+(Windows+NT)", "Mozilla/5.0 (Windows NT)"},
		{"CloudFront escapes as in URLs", EscapePercent, "Mozilla/5.0%20(X)%", "Mozilla/5.0 (X)%"},
		{"CloudFront escapes some fields twice", EscapePercent, "a%2520b", "a b"},
		{"nothing was escaped", EscapeNone, `\x22+%20`, `\x22+%20`},
	} {
		if got := string(Unescape([]byte("+"), []byte(c.in), c.style)); got != "+"+c.out {
			t.Errorf("%s: %q, want %q", c.why, got, "+"+c.out)
		}
	}
}
