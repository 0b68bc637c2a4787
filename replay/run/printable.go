package run

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text that cannot harm a terminal: control, format and bidirectional characters are spelled out
// (\x1b, \u202e), as plimsoll/common/hostile.py does it, except line ends. So is what is not UTF-8.
func Printable(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case r == '\n' || unicode.IsGraphic(r):
			out.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
		text = text[n:]
	}
	return out.String()
}

// warn prints a warning.
func warn(w io.Writer, what any) {
	fmt.Fprintf(w, "replay: warning: %s\n", Printable(fmt.Sprint(what)))
}
