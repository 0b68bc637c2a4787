package accesslog

// Recordings other than logs, read as logs of the preset RECORDING: GoReplay's files and HTTP Archives.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// recordedRequest is a request of a recording that is not a log, as a line of the preset RECORDING. So whatever reads
// logs reads GoReplay's files and HAR, too: their requests are its lines.
type recordedRequest struct {
	Time     string `json:"time"` // when it was answered; when it came, where the duration is not known
	Client   string `json:"client"`
	User     string `json:"user,omitempty"`
	Method   string `json:"method"`
	Host     string `json:"host,omitempty"`
	Target   string `json:"target"`
	Protocol string `json:"protocol,omitempty"`
	Status   int    `json:"status"`
	Bytes    *int64 `json:"bytes,omitempty"`
	Duration string `json:"duration,omitempty"` // in seconds
	Referer  string `json:"referer,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Type     string `json:"type,omitempty"`
	Length   *int64 `json:"length,omitempty"`
	Body     string `json:"body,omitempty"`
}

// nobody is the client where a recording does not say who it was.
const nobody = "0.0.0.0"

// setTimes sets the instants of a request that began at one and took so long; −1: unknown.
func (r *recordedRequest) setTimes(start time.Time, duration time.Duration) {
	if duration >= 0 {
		start = start.Add(duration)
		r.Duration = fmt.Sprintf("%.6f", duration.Seconds())
	}
	r.Time = fmt.Sprintf("%d.%06d", start.Unix(), start.Nanosecond()/1000)
}

// memberCookie matches the cookies that WordPress and XenForo give to those who are logged in.
var memberCookie = regexp.MustCompile(`(?:^|;\s*)(?:wordpress_logged_in_[^=;]*|[a-z0-9_]*xf[a-z0-9_]*_user)=[^;]`)

// noteMember notes that the client was logged in. The cookie itself goes no further.
func (r *recordedRequest) noteMember(cookie string) {
	if memberCookie.MatchString(cookie) {
		r.User = "member"
	}
}

// line returns the request as a line of a log. A body that would make it longer than lines may be is left out, and its
// length tells that it was there.
func (r *recordedRequest) line() []byte {
	line, err := json.Marshal(r)
	if err == nil && len(line) > MaxLineBytes && r.Body != "" {
		length := int64(len(r.Body))
		r.Body, r.Length = "", &length
		line, err = json.Marshal(r)
	}
	if err != nil {
		return unreadable
	}
	return line
}

// Lines for what is not a request. A comment does not count, and what cannot be read is rejected.
var (
	unreadable = []byte(`not a request`)
	leftOut    = []byte(`# left out`)
)

var errNoEntries = errors.New("log.entries is missing")

// recordings are recognised by how they begin.
var recordings = [...]struct {
	begins *regexp.Regexp
	lines  func(r *bufio.Reader) func() ([]byte, error)
}{
	{regexp.MustCompile(`^[123] [0-9a-fA-F]+ [0-9]{10,20}(?: -?[0-9]+)?\r?\n`), gorLines},
	{regexp.MustCompile(`^(?:\x{FEFF})?\s*\{\s*"log"\s*:\s*\{`), harLines},
}

// unwrap returns what a recording is as a log, and anything else as it is.
func unwrap(text *bufio.Reader) *bufio.Reader {
	head, _ := text.Peek(1 << 10)
	for _, one := range recordings {
		if one.begins.Match(head) {
			return bufio.NewReaderSize(&lineReader{next: one.lines(text)}, headBytes)
		}
	}
	return text
}

// lineReader reads lines that are made one by one. Their error, io.EOF at the end, comes after the last line.
type lineReader struct {
	next func() ([]byte, error)
	line []byte
	err  error
}

func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.line) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		var line []byte
		if line, l.err = l.next(); len(line) > 0 {
			l.line = append(bytes.Clone(line), '\n')
		}
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

// protocolOf names a protocol as logs do.
func protocolOf(text string) string {
	text = strings.ToUpper(text)
	switch {
	case strings.Contains(text, "3"):
		return "HTTP/3"
	case strings.Contains(text, "2"):
		return "HTTP/2"
	case strings.HasSuffix(text, "1.0"):
		return "HTTP/1.0"
	}
	return "HTTP/1.1"
}

// brokenRecording says where a recording cannot be read on.
func brokenRecording(kind string, number int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: this %s ends in the middle, after %d requests: save it again", ErrTruncated, kind, number)
	}
	return fmt.Errorf("%w: this %s is damaged after request %d (%w): save it again", ErrRecording, kind, number, err)
}
