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

// Told is what an answer says to a client that keeps cookies. It comes from the site: whoever uses it trusts nothing in
// it.
type Told struct {
	Location  string
	SetCookie []string
	Page      []byte // what came of an HTML page, packed as Coding says; nil: none was asked for, or it is too long
	Coding    string

	wantsPage bool // and the answer may be one
}

// maxPageBytes bounds what is kept of a page, packed as it came.
const maxPageBytes = 1 << 20

// Keep keeps a part of the body, where the answer is a page that is wanted. Nil keeps nothing.
func (t *Told) Keep(b []byte) {
	switch {
	case t == nil || !t.wantsPage:
	case len(t.Page)+len(b) > maxPageBytes:
		t.Page, t.wantsPage = nil, false
	default:
		t.Page = append(t.Page, b...)
	}
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
	case bytes.EqualFold(name, []byte("Content-Encoding")):
		t.Coding = string(value)
	case bytes.EqualFold(name, []byte("Content-Type")):
		t.wantsPage = t.wantsPage && hasPrefixFold(value, "text/html")
	}
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}

// HTTP2Told returns what the headers of an HTTP/2 response tell. With page, an HTML page is kept as it comes.
func HTTP2Told(f *http2.MetaHeadersFrame, page bool) *Told {
	told := &Told{wantsPage: page}
	for _, field := range f.RegularFields() {
		told.take([]byte(field.Name), []byte(field.Value))
	}
	return told
}
