package accesslog

import (
	"fmt"
	"strconv"
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
	// Specifier is the one that failed, such as "%d"; for a line that is no JSON it is "{".
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
	return s + ": " + strconv.QuoteToASCII(string(clip(r.Token, 64)))
}

// Clone returns a copy that outlives the next call of Parse.
func (r *Mismatch) Clone() *Mismatch {
	c := *r
	c.Token = append([]byte(nil), clip(r.Token, 256)...)
	return &c
}

func clip(b []byte, n int) []byte {
	if len(b) > n {
		return b[:n]
	}
	return b
}
