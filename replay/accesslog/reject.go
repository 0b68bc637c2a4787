package accesslog

import (
	"fmt"
	"strconv"
)

// Reject says why a line is not a valid request. Parse reuses it: copy it to keep it.
type Reject struct {
	// Specifier is the one that failed, such as "%d"; for a line that is no JSON it is "{".
	Specifier string
	// Column is the byte of the line, from 1, where it failed; in JSON, where the value begins.
	Column int
	// Why completes the sentence "%d at column 21 …".
	Why string
	// Token is what stood there, as a view into the line; nil where nothing did.
	Token []byte
}

// Error is the whole sentence, with the token quoted so that it cannot harm a terminal.
func (r *Reject) Error() string {
	s := fmt.Sprintf("%s at column %d %s", r.Specifier, r.Column, r.Why)
	if len(r.Token) == 0 {
		return s
	}
	return s + ": " + strconv.QuoteToASCII(string(clip(r.Token, 64)))
}

// Clone returns a copy that outlives the next call of Parse.
func (r *Reject) Clone() *Reject {
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
