package accesslog

// HTTP Archives become lines of the preset RECORDING.

import (
	"bufio"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"time"
)

// harEntry is what a replay needs of an entry of an HTTP Archive, version 1.2
// (http://www.softwareishard.com/blog/har-12-spec/).
type harEntry struct {
	StartedDateTime time.Time `json:"startedDateTime"`
	Time            float64   `json:"time"` // in milliseconds
	Request         struct {
		Method, URL, HTTPVersion string
		Headers                  []harPair
		BodySize                 int64
		PostData                 *struct {
			MimeType, Text string
			Params         []harPair
		}
	} `json:"request"`
	Response struct {
		Status   int
		BodySize int64
		Content  struct{ MimeType string }
	} `json:"response"`
}

type harPair struct{ Name, Value, FileName string }

// harLines reads the entries of an archive one by one. Requests to other hosts than the page's are left out: a browser's
// archive has fonts and counters of third parties, which a clone does not serve.
func harLines(text *bufio.Reader) func() ([]byte, error) {
	if bom, _ := text.Peek(3); string(bom) == "\ufeff" {
		_, _ = text.Discard(3)
	}
	decoder := json.NewDecoder(text)
	entered, count, site := false, 0, harSite{}
	return func() ([]byte, error) {
		if !entered {
			if err := enterEntries(decoder); err != nil {
				return nil, brokenRecording("HTTP Archive", count, err)
			}
			entered = true
		}
		if !decoder.More() {
			if _, err := decoder.Token(); err != nil { // the bracket that ends them
				return nil, brokenRecording("HTTP Archive", count, err)
			}
			return nil, io.EOF
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, brokenRecording("HTTP Archive", count, err)
		}
		count++
		var entry harEntry
		if json.Unmarshal(raw, &entry) != nil {
			return unreadable, nil
		}
		return entry.line(&site), nil
	}
}

// enterEntries goes to the first of log.entries.
func enterEntries(decoder *json.Decoder) error {
	for _, name := range []string{"log", "entries"} {
		if _, err := decoder.Token(); err != nil { // the brace
			return err
		}
		for {
			key, err := decoder.Token()
			if err != nil {
				return err
			}
			if key == name {
				break
			}
			if _, isKey := key.(string); !isKey {
				return errNoEntries
			}
			var other json.RawMessage
			if err = decoder.Decode(&other); err != nil {
				return err
			}
		}
	}
	bracket, err := decoder.Token()
	if err == nil && bracket != json.Delim('[') {
		err = errNoEntries
	}
	return err
}

// harSite is the host whose requests count: that of the first answer that does not redirect, as from example.com to
// www.example.com. The redirects before it count, too.
type harSite struct {
	host  string
	found bool
}

// has reports whether a request to a host counts.
func (s *harSite) has(host string, status int) bool {
	if !s.found {
		s.host, s.found = host, status < 300 || status > 399
	}
	return strings.EqualFold(host, s.host)
}

// line returns an entry as a line of a log.
func (e *harEntry) line(site *harSite) []byte {
	address, target, ok := splitURL(e.Request.URL)
	byBrowser := strings.HasPrefix(e.Response.Content.MimeType, "application/ocsp") // what it asks about a certificate
	if !ok || byBrowser || !site.has(address, e.Response.Status) {
		return leftOut
	}
	r := recordedRequest{
		Client: nobody, Method: e.Request.Method, Host: address, Target: target, Protocol: protocolOf(e.Request.HTTPVersion),
		Status: max(0, e.Response.Status),
	}
	duration := time.Duration(-1)
	if e.Time >= 0 && e.Time < 1e9 {
		duration = time.Duration(e.Time * 1e6)
	}
	r.setTimes(e.StartedDateTime, duration)
	if e.Response.BodySize >= 0 && e.Response.Status != 0 {
		r.Bytes = &e.Response.BodySize
	}
	for _, header := range e.Request.Headers {
		switch strings.ToLower(header.Name) {
		case "user-agent":
			r.Agent = header.Value
		case "referer":
			r.Referer = header.Value
		case "content-type":
			r.Type = header.Value
		case "cookie":
			r.noteMember(header.Value)
		}
	}
	e.carry(&r)
	return r.line()
}

// carry adds what the request carried. Where the archive has only the fields of a form, this is made of them.
func (e *harEntry) carry(r *recordedRequest) {
	post := e.Request.PostData
	if post == nil {
		if e.Request.BodySize > 0 {
			r.Length = &e.Request.BodySize
		}
		return
	}
	if r.Type == "" {
		r.Type = post.MimeType
	}
	r.Body = post.Text
	if r.Body == "" && strings.HasPrefix(r.Type, "application/x-www-form-urlencoded") {
		var pairs []string
		for _, field := range post.Params {
			pairs = append(pairs, queryEscaped(field.Name)+"="+queryEscaped(field.Value))
		}
		r.Body = strings.Join(pairs, "&")
		return
	}
	if e.Request.BodySize > 0 {
		r.Length = &e.Request.BodySize
	}
}

// queryEscaped escapes a field's text, unless the browser that wrote the archive left its escapes in: Chromium does.
func queryEscaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil && plain != text {
		return text
	}
	return url.QueryEscape(text)
}

// splitURL cuts an address into host and target, as they go out.
func splitURL(address string) (host, target string, ok bool) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "", false
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	host, target = rest[:end], rest[end:]
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	return host, target, host != ""
}
