package same

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"plimsoll/replay/coding"
	"plimsoll/replay/engine/target"
)

// Fetching says how answers are asked for.
type Fetching struct {
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
	how     Fetching
	client  *http.Transport
}

// NewSite returns a side. The headers are sent with each request.
func NewSite(to *target.Target, headers http.Header, how Fetching) *Site {
	scheme := "http"
	if to.TLS {
		scheme = "https"
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, _, _, err := to.Dial(ctx, target.Dialing{ServerName: target.ServerName(to.Host), Timeout: how.Timeout})
		return conn, err
	}
	return &Site{to: to, headers: headers, own: newOwnLinks(scheme, to.Host), how: how, client: &http.Transport{
		DialContext: dial, DialTLSContext: dial, DisableCompression: true,
		MaxIdleConnsPerHost: how.Connections, MaxConnsPerHost: how.Connections, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: mostHeadBytes, ResponseHeaderTimeout: how.Timeout,
	}}
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
	body, known, err := coding.Unpacked(response.Header.Get("Content-Encoding"), sent)
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
	case errors.Is(err, coding.ErrBroken):
		return fmt.Errorf("the body %w", coding.ErrBroken)
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
