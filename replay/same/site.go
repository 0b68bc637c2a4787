package same

// One side of a comparison: it is asked, its answers are read, and its own address is taken out of its links.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
)

// FetchOptions says how answers are asked for.
type FetchOptions struct {
	Timeout      time.Duration    // for a whole answer
	MostBytes    int64            // of a body, as it comes and unpacked
	Connections  int              // at once, to each side
	LastModified bool             // its values are compared
	Ignore       []*regexp.Regexp // text that is not compared
}

// mostHeadBytes bounds the headers of an answer.
const mostHeadBytes = 256 << 10

// Site is one of the two sides: asked at its own address only, whatever it or a log says.
type Site struct {
	to      *target.Target
	headers http.Header
	own     *ownLinks
	how     FetchOptions
	client  *http.Transport
}

// NewSite returns a side. The headers are sent with each request.
func NewSite(to *target.Target, headers http.Header, how FetchOptions) *Site {
	client := to.Transport(to.Host, how.Timeout)
	client.DisableCompression, client.IdleConnTimeout = true, 30*time.Second
	client.MaxIdleConnsPerHost, client.MaxConnsPerHost = how.Connections, how.Connections
	client.MaxResponseHeaderBytes, client.ResponseHeaderTimeout = mostHeadBytes, how.Timeout
	return &Site{to: to, headers: headers, own: newOwnLinks(to.Scheme(), to.Host), how: how, client: client}
}

// Close gives back the connections.
func (s *Site) Close() { s.client.CloseIdleConnections() }

// canBeAsked reports whether a target is sent as it is written: a path at the server itself.
func canBeAsked(path string) bool {
	u := addressOf("http", "x", path)
	return strings.HasPrefix(path, "/") && u.RequestURI() == path
}

// addressOf returns the URL whose request has exactly this target. A target that begins with two slashes would be read
// as another host.
func addressOf(scheme, host, path string) *url.URL {
	u := &url.URL{Scheme: scheme, Host: host}
	if !strings.HasPrefix(path, "//") {
		u.Opaque = path
		return u
	}
	raw, query, asked := strings.Cut(path, "?")
	plain, err := url.PathUnescape(raw)
	if err != nil {
		plain = raw
	}
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = plain, raw, query, asked && query == ""
	return u
}

// ErrTooLarge says that a body is larger than what is compared.
var ErrTooLarge = errors.New("larger than --max-bytes")

// Get asks for a target once, and follows nothing. It returns an answer, whatever comes.
func (s *Site) Get(ctx context.Context, path string) *Answer {
	ctx, cancel := context.WithTimeout(ctx, s.how.Timeout)
	defer cancel()
	request := (&http.Request{
		Method: http.MethodGet, URL: addressOf(s.own.scheme, s.to.Host, path), Host: s.to.Host, Header: s.headers.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	response, err := s.client.RoundTrip(request)
	if err != nil {
		return &Answer{Err: s.explain(ctx, err, 0)}
	}
	defer response.Body.Close()
	answer := &Answer{
		Status: response.StatusCode, Headers: headersOf(response.Header, s.own, s.how.LastModified),
	}
	answer.MediaType, _, _ = strings.Cut(strings.ToLower(response.Header.Get("Content-Type")), ";")
	answer.MediaType = strings.TrimSpace(answer.MediaType)
	if err := s.read(answer, response); err != nil {
		answer.Err = s.explain(ctx, err, answer.Sent)
	}
	return answer
}

// read reads a body to its end, with bounded memory.
func (s *Site) read(answer *Answer, response *http.Response) error {
	sent := &counted{from: response.Body, most: s.how.MostBytes}
	defer func() { answer.Sent = sent.bytes }()
	body, known, err := wire.Unpack(response.Header.Get("Content-Encoding"), sent)
	if err != nil {
		return err
	}
	defer body.Close()
	answer.Packed = !known
	plain := &counted{from: body, most: s.how.MostBytes}
	sum := sha256.New()
	kept := &head{}
	_, err = io.Copy(io.MultiWriter(sum, kept), plain)
	answer.Bytes, answer.Kept = plain.bytes, kept.bytes
	sum.Sum(answer.SHA256[:0])
	switch {
	case sent.failed != nil:
		return sent.failed
	case err != nil:
		return err
	}
	_, err = io.Copy(io.Discard, sent) // what follows the packed data
	return err
}

// explain returns why there is no whole answer, in words of which none is the site's.
func (s *Site) explain(ctx context.Context, err error, sent int64) error {
	switch {
	case errors.Is(err, ErrTooLarge):
		return fmt.Errorf("the body is %w (%d): give more, or leave the page out with --exclude", ErrTooLarge, s.how.MostBytes)
	case ctx.Err() == context.DeadlineExceeded || target.IsTimeout(err):
		return errTimeout{s.how.Timeout, sent}
	case errors.Is(err, syscall.ECONNREFUSED):
		return errNoAnswer{"the server refuses connections"}
	case errors.Is(err, wire.ErrCoding):
		return fmt.Errorf("the body %w", wire.ErrCoding)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		if sent > 0 {
			return fmt.Errorf("the connection ended in the body, after %d bytes", sent)
		}
		return errNoAnswer{"the connection ended before the answer did"}
	}
	return errNoAnswer{err.Error()}
}

// errNoAnswer says that a side gave no answer at all.
type errNoAnswer struct{ why string }

func (e errNoAnswer) Error() string { return e.why }

// errTimeout says that an answer was not whole in time.
type errTimeout struct {
	after time.Duration
	sent  int64
}

func (e errTimeout) Error() string {
	return fmt.Sprintf("there was no whole answer in %v, but %d bytes of a body", e.after, e.sent)
}

// isSilence reports whether a side gave nothing of an answer.
func isSilence(err error) bool {
	var none errNoAnswer
	var late errTimeout
	return errors.As(err, &none) || errors.As(err, &late) && late.sent == 0
}

// counted counts what is read, and ends with ErrTooLarge after so many bytes.
type counted struct {
	from   io.Reader
	bytes  int64
	most   int64
	failed error // of the source
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if c.bytes += int64(n); c.bytes > c.most {
		err = ErrTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.failed = err
		return 0, err
	}
	return n, err
}

// head keeps the first bytes that are written to it.
type head struct{ bytes []byte }

func (h *head) Write(p []byte) (int, error) {
	h.bytes = append(h.bytes, p[:min(len(p), keptBytes-len(h.bytes))]...)
	return len(p), nil
}

// Answer is what one side answered, once.
type Answer struct {
	Status    int
	Headers   map[string]string // those that are compared, by name as in comparedHeaders; "" where one is not there
	MediaType string            // text/html
	Sent      int64             // bytes of the body as they came
	Bytes     int64             // bytes of the body, unpacked
	SHA256    [sha256.Size]byte // of the body, unpacked, in which the side's own links stand as they are
	Kept      []byte            // the body, unpacked, up to keptBytes of it
	Packed    bool              // it came in a coding that cannot be unpacked, and is compared as it came
	Err       error             // why there is no whole answer; nothing else holds then, but perhaps Status
}

// keptBytes is how much of a body is held. What goes beyond counts in sums only.
const keptBytes = 4 << 20

// isWhole reports whether the whole body is held.
func (a *Answer) isWhole() bool { return a.Bytes == int64(len(a.Kept)) }

// isText reports whether what varies by itself in a body can be distinguished from what does not. All else, images
// above all, is compared byte by byte.
func (a *Answer) isText() bool {
	kind := a.MediaType
	switch {
	case a.Packed:
		return false
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), kind == "":
		return true
	case strings.HasSuffix(kind, "+xml"):
		return !strings.HasPrefix(kind, "image/")
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ld+json":
		return true
	}
	return false
}

// comparedHeaders are the headers by which two answers differ for a visitor. Last-Modified and ETag are compared as
// present or not: they decide whether a browser's cache can ask again, but a good copy may have new times, and some
// servers make an ETag of the inode. Dates, cookies, and what names the server or a cache are not part of a page.
var comparedHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control", "Location", "Link",
	"Vary", "WWW-Authenticate", "X-Robots-Tag", "Access-Control-Allow-Origin", "Last-Modified", "ETag",
}

// onlyPresent are the headers of which it is compared whether they are there.
var onlyPresent = map[string]bool{"Last-Modified": true, "ETag": true}

// headersOf returns the compared headers of an answer, spelled alike. The values of those in exact are compared, too.
func headersOf(from http.Header, own *ownLinks, exact bool) map[string]string {
	out := map[string]string{}
	for _, name := range comparedHeaders {
		value := strings.Join(from.Values(name), ", ")
		switch {
		case value == "":
		case onlyPresent[name] && !(exact && name == "Last-Modified"):
			value = "present"
		case name == "Content-Type":
			value = spelled(value)
		case name == "Cache-Control" || name == "Vary":
			value = sortedList(value)
		case name == "Location":
			value = fromRoot(string(own.normalise([]byte(value))))
		default:
			value = string(own.normalise([]byte(value)))
		}
		out[name] = value
	}
	return out
}

// spelled returns a Content-Type in small letters with one space between its parts.
func spelled(value string) string {
	kind, parameters, err := mime.ParseMediaType(value)
	if err != nil {
		return value
	}
	if charset, ok := parameters["charset"]; ok {
		parameters["charset"] = strings.ToLower(charset)
	}
	return mime.FormatMediaType(kind, parameters)
}

// sortedList returns a list with commas between its parts in one order.
func sortedList(value string) string {
	parts := strings.Split(strings.ToLower(value), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// fromRoot returns a location on the side itself without its address: /path and the whole URL lead to one place.
func fromRoot(location string) string {
	for _, own := range []string{"site://" + ownSite, "//" + ownSite} {
		if rest, ok := strings.CutPrefix(location, own); ok {
			if rest == "" {
				return "/"
			}
			return rest
		}
	}
	return location
}

// ownSite stands for a side's own address in what is compared.
const ownSite = "site.invalid"

// ownLinks takes a side's own name out of links, so that two sites at different addresses have the same pages. It knows
// them plain (//shop.example), with JSON's backslashes (\/\/shop.example) and percent-encoded.
type ownLinks struct {
	scheme string
	links  *regexp.Regexp
}

// ids finds what feeds and WordPress's REST interface call a post by. It is an address that leads nobody anywhere: that
// at which the post was once written, which a clone under another name keeps, or has rewritten with all others.
var ids = regexp.MustCompile(`(<guid isPermaLink="false">|"guid":\{"rendered":")https?:(//|\\/\\/)[^/\\<"]+`)

// newOwnLinks takes a base URL's scheme and its host, with its port where that is not the scheme's own.
func newOwnLinks(scheme, host string) *ownLinks {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	ports := map[string]string{"http": "80", "https": "443"}
	written := regexp.QuoteMeta(name)
	if strings.Contains(name, ":") { // IPv6
		written = `(?:\[|%5B)` + strings.ReplaceAll(written, ":", "(?::|%3A)") + `(?:\]|%5D)`
	}
	switch {
	case port == "" || port == ports[scheme]:
		written += `(?:(?::|%3A)` + ports[scheme] + `)?`
	default:
		written += `(?::|%3A)` + port
	}
	return &ownLinks{scheme, regexp.MustCompile(`(?i)(https?(?::|%3A))?(//|\\/\\/|%2F%2F)` + written)}
}

// normalise returns a text in which links to the side itself name no host, and no scheme where it is the side's own;
// nor do the ids of posts. A longer name that only begins like the side's own stays.
func (o *ownLinks) normalise(text []byte) []byte {
	if bytes.Contains(text, []byte("guid")) {
		text = ids.ReplaceAll(text, []byte("${1}site:${2}"+ownSite))
	}
	var out []byte
	done := 0
	for _, at := range o.links.FindAllSubmatchIndex(text, -1) {
		if continues(text[at[1]:]) {
			continue
		}
		out = append(out, text[done:at[0]]...)
		if at[2] >= 0 {
			scheme := text[at[2]:at[3]]
			named := bytes.TrimSuffix(bytes.TrimSuffix(bytes.ToLower(scheme), []byte("%3a")), []byte(":"))
			if string(named) == o.scheme {
				out = append(out, "site"...)
				out = append(out, scheme[len(named):]...)
			} else {
				out = append(out, scheme...)
			}
		}
		out = append(append(out, text[at[4]:at[5]]...), ownSite...)
		done = at[1]
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// continues reports whether a host name goes on after the place at which it should end.
func continues(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	switch c := rest[0]; {
	case c == '.' || c == ':':
		return len(rest) > 1 && (isWord(rest[1]) && (c == '.' || isDigit(rest[1])))
	case c == '-':
		return true
	case c == '%':
		return bytes.HasPrefix(bytes.ToLower(rest), []byte("%3a")) && len(rest) > 3 && isDigit(rest[3])
	default:
		return isWord(c)
	}
}
