package accesslog

import (
	"fmt"
	"strconv"
	"strings"

	"plimsoll/replay/redact"
)

// Reject is a line that is not a valid request.
type Reject struct {
	File     int       // the file's index in the Source
	Line     uint64    // from 1
	Text     []byte    // the beginning of the line
	Mismatch *Mismatch // why
}

// Mismatch is the reason why a line is not a valid request. Parse reuses it: copy it to keep it.
type Mismatch struct {
	// Specifier is the one that failed, such as "%d"; for a line that is not JSON it is "{".
	Specifier string
	// Column is the byte of the line, from 1, where it failed; in JSON, where the value begins.
	Column int
	// Why completes the sentence "%d at column 21 …".
	Why string
	// Token is what stood there, as a view into the line; nil where nothing did.
	Token []byte
}

// Error returns the whole sentence, with the token quoted so that it cannot harm a terminal.
func (r *Mismatch) Error() string {
	s := fmt.Sprintf("%s at column %d %s", r.Specifier, r.Column, r.Why)
	if len(r.Token) == 0 {
		return s
	}
	return s + ": " + quoted(r.Token)
}

// Clone returns a copy that outlives the next call of Parse, without the secrets of the line.
func (r *Mismatch) Clone(line []byte) *Mismatch {
	c := *r
	if len(r.Token) > 0 {
		c.Token = []byte(without(redact.Line(string(line)), string(clip(r.Token, 256))))
	}
	return &c
}

// without returns a part of a line without secrets, by the line without them: what stands before a part may tell that it
// is one.
func without(safe, part string) string {
	if strings.Contains(safe, part) {
		return part
	}
	if part = redact.Line(part); strings.Contains(safe, part) {
		return part
	}
	return redact.Redacted
}

// quoted shows the beginning of a log's text without secrets, and so that it cannot harm a terminal.
func quoted(text []byte) string {
	return strconv.QuoteToASCII(string(clip([]byte(redact.Line(string(text))), 64)))
}

func clip(b []byte, n int) []byte {
	if len(b) > n {
		return b[:n]
	}
	return b
}
