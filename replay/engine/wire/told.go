package wire

import (
	"bytes"

	"golang.org/x/net/http2"
)

// Bounds of what one answer may tell. Browsers keep no larger cookies either.
const (
	maxToldBytes   = 8 << 10
	maxCookiesTold = 64
)

// Told is what an answer tells a client that keeps cookies. It comes from the site: whoever uses it trusts nothing in it.
type Told struct {
	Location  string
	SetCookie []string
}

// take keeps a header, if it is one of these, within bounds and without control characters.
func (t *Told) take(name, value []byte) {
	if len(value) > maxToldBytes || !isFieldValue(value) {
		return
	}
	switch {
	case bytes.EqualFold(name, []byte("Location")):
		t.Location = string(value)
	case bytes.EqualFold(name, []byte("Set-Cookie")) && len(t.SetCookie) < maxCookiesTold:
		t.SetCookie = append(t.SetCookie, string(value))
	}
}

// HTTP2Told returns what the headers of an HTTP/2 response tell.
func HTTP2Told(f *http2.MetaHeadersFrame) *Told {
	told := &Told{}
	for _, field := range f.RegularFields() {
		told.take([]byte(field.Name), []byte(field.Value))
	}
	return told
}
