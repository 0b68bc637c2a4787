package record

import (
	"fmt"
	"strconv"
	"strings"

	"plimsoll/replay/redact"
)

const (
	maxRejects     = 1000
	maxRejectBytes = 2000 // of a rejected line's own text
)

// Reject is a log line that did not parse.
type Reject struct {
	File      string
	Line      uint64
	Specifier string // the one that failed, such as "%h"; may be empty
	Column    int    // from 1, in bytes; 0 unknown
	Why       string
	Text      []byte // the line as it was; its secrets are not kept
}

// line returns the reject on one line without control characters, so that it can do no harm on a terminal.
func (r Reject) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", escape(r.File), r.Line, r.Column)
	if r.Specifier != "" {
		b.WriteString(escape(r.Specifier) + ": ")
	}
	b.WriteString(escape(r.Why) + ": ")
	text := redact.Line(string(r.Text))
	if len(text) > maxRejectBytes {
		fmt.Fprintf(&b, "%s… (%d bytes)", escape(text[:maxRejectBytes]), len(r.Text))
	} else {
		b.WriteString(escape(text))
	}
	b.WriteByte('\n')
	return b.String()
}

// escape writes what is not printable, and the backslash, as Go's string literals do; quotes stay.
func escape(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
