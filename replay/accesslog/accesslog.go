// Package accesslog reads web servers' access logs as goaccess does.
//
// A log's format is a goaccess log-format string, or the name of one of goaccess's presets. It is compiled once,
// into a small program that runs over the bytes of a line and allocates nothing:
//
//	format, err := accesslog.Compile(accesslog.Spec{Log: "COMBINED"})
//	var request accesslog.Request
//	if mismatch := format.Parse(line, &request); mismatch != nil { … }
//
// Whole logs, plain or compressed, one file or a rotated set, are read on all cores in constant memory: Open finds
// the files, FormatFor compiles or detects their format, Count folds them into totals, and Read hands out requests
// merged by time.
//
// What a specifier means, what makes a line valid, and where this package differs from goaccess on purpose, is
// written in docs/log-formats.md. Tests hold the package against the real goaccess.
package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"plimsoll/replay/accesslog/formats"
	"plimsoll/replay/redact"
)

// Spec describes a log's format in goaccess's words.
type Spec struct {
	// Log is a preset's name, in any case, or a goaccess log-format string.
	Log string
	// Date, Time and DateTime are strftime formats for %d, %t and %x. Empty means what the preset says, else %d/%b/%Y
	// for %d, %H:%M:%S for %t, and for %x seconds since the epoch, ISO 8601 or Apache's form, whichever is met.
	Date, Time, DateTime string
	// TZ is the IANA name of the zone of times that bear no UTC offset of their own. Empty means UTC.
	TZ string
	// StrictHosts refuses a %h that is not an IP address, as goaccess does without --no-ip-validation.
	StrictHosts bool
}

// Format is a compiled log format together with the scratch space of one parser. It is not safe for concurrent use;
// Clone is cheap and gives another goroutine its own.
type Format struct {
	*program
	base  *program // as it was compiled; a comment of the log may name other fields
	named []byte   // that comment

	warning string
	scanner
}

// Clone returns a Format that shares the program and nothing else.
func (f *Format) Clone() *Format {
	return &Format{program: f.base, base: f.base}
}

// program is what Compile makes of a Spec; it never changes afterwards.
type program struct {
	spec         Spec
	name         string
	log          string
	ops          []op            // of a text format
	keys         map[string][]op // of a JSON format: the ops for the value at each key
	date         timeFormat      // of %d
	time         timeFormat      // of %t
	dateTime     timeFormat      // of %x
	location     *time.Location  // of times without an offset; nil means UTC
	resolution   time.Duration
	logTime      formats.LogTime
	escape       formats.Escape
	strictHosts  bool
	vhostIsLabel bool   // %v names a router, a balancer or a bucket, not the host that was asked for
	lastVHost    bool   // of several %v the last one is the host that was asked for
	zeroStatus   bool   // a status of 0 or -1, in W3C's logs also none, is a request that was given up, not a mistake
	namesFields  bool   // comments of the log name its fields
	method       string // of requests in a log that has none; "": they stay without
	hasBodies    bool   // some field is the body of the request
	clientKey    string // in JSON: the key whose client takes precedence; "" for none
}

// Name returns the preset's name, or the format string itself.
func (f *Format) Name() string { return f.name }

// Warning says how many of the first lines the format reads that speak against it, where it was detected; "" for none.
func (f *Format) Warning() string { return f.warning }

// Spec returns all that was compiled: what the user said, and what the preset says where the user said nothing.
func (f *Format) Spec() Spec { return f.spec }

// LogFormat returns the goaccess log-format string that was compiled.
func (f *Format) LogFormat() string { return f.log }

// Resolution returns the finest difference between two timestamps that the format can express.
func (f *Format) Resolution() time.Duration { return f.resolution }

// LogTime returns the instant of a request that Request.TimeNS stands for.
func (f *Format) LogTime() formats.LogTime { return f.logTime }

// HasBodies reports whether the log is a recording: it has the bodies of requests.
func (f *Format) HasBodies() bool { return f.hasBodies }

// Escape returns how the server escaped the fields that clients can write into its log.
func (f *Format) Escape() formats.Escape { return f.escape }

// RefererEscape returns how the server escaped the referer, in which IIS's plus sign is one: a URL has no spaces.
func (f *Format) RefererEscape() formats.Escape {
	if f.escape == formats.EscapePlus {
		return formats.EscapeNone
	}
	return f.escape
}

// TargetEscape returns how the server escaped the request target. It differs from Escape where a server marks only
// header fields, as IIS does with its plus signs.
func (f *Format) TargetEscape() formats.Escape {
	if f.escape == formats.EscapeBackslash || f.escape == formats.EscapeHash {
		return f.escape
	}
	return formats.EscapeNone
}

// ReadConfig reads a goaccess.conf: log-format, date-format, time-format, datetime-format and tz. All other keys are
// ignored, but a line with a key and nothing after it is a mistake.
func ReadConfig(r io.Reader, name string) (Spec, error) {
	var spec Spec
	into := map[string]*string{
		"log-format": &spec.Log, "date-format": &spec.Date, "time-format": &spec.Time,
		"datetime-format": &spec.DateTime, "tz": &spec.TZ,
	}
	var errs []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value := line, ""
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			key, value = line[:i], strings.TrimSpace(line[i:])
		}
		at, ok := into[strings.ReplaceAll(key, "_", "-")]
		if !ok {
			continue
		}
		if value == "" {
			errs = append(errs, fmt.Errorf("%s, line %d: %s has no value: write it after a space", name, n, key))
			continue
		}
		*at = value
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("reading %s: %w", name, err))
	}
	return spec, errors.Join(errs...)
}

// ReadConfigFile reads the goaccess.conf at a path.
func ReadConfigFile(path string) (Spec, error) {
	file, err := os.Open(path)
	if err != nil {
		return Spec{}, fmt.Errorf("reading goaccess's configuration: %w", err)
	}
	defer file.Close()
	return ReadConfig(file, path)
}

// Or returns s with its empty fields taken from other, as the command line takes precedence over the configuration
// file.
func (s Spec) Or(other Spec) Spec {
	for _, at := range [...]struct {
		to   *string
		from string
	}{
		{&s.Log, other.Log}, {&s.Date, other.Date}, {&s.Time, other.Time}, {&s.DateTime, other.DateTime}, {&s.TZ, other.TZ},
	} {
		if *at.to == "" {
			*at.to = at.from
		}
	}
	s.StrictHosts = s.StrictHosts || other.StrictHosts
	return s
}

// Request is one logged request. Its byte slices are views into the line, or into scratch space of the parser that
// is good until the next call of Parse or, for requests of a Batch, until Batch.Release.
type Request struct {
	// TimeNS is the logged instant in nanoseconds since the Unix epoch, UTC offset applied, fraction kept.
	TimeNS int64
	// DurationNS is how long the server took, in nanoseconds; -1 where the log does not say.
	DurationNS int64
	// Bytes is the size of the response as logged, in bytes; -1 where the format has no %b. A %b of "-" is 0.
	Bytes int64
	// BodyBytes is the length of the request's body as its headers had it, in bytes; -1 where the log does not say.
	BodyBytes int64
	// Line is the line's number in its file, from 1. Read sets it; Parse leaves it alone.
	Line uint64
	// File is the file's index in the Source. Read sets it; Parse leaves it alone.
	File int
	// OffsetS is the UTC offset that the timestamp was logged with, in seconds east.
	OffsetS int32
	// Status is the HTTP status; 0 where the log does not say.
	Status uint16

	// Host is the client's address or name; VHost the host that was asked for. Method is as it was sent. Target is
	// the raw request target with its query: a request line that is not method, target and protocol is all target,
	// and Method is then nil. Protocol is HTTP/1.0, HTTP/1.1, HTTP/2 or HTTP/3. User is who the server had authenticated.
	// A field that the log lacks is nil.
	Host, VHost, User, Method, Target, Protocol, Referer, UserAgent []byte
	// URLHost is the host of a Target that was an absolute URL. Each sets it; Parse leaves Target as it is.
	URLHost []byte
	// Body is the request's body, and BodyType its content type, where the log is a recording. Both may hold secrets.
	Body, BodyType []byte
}

func (r *Request) reset() {
	line, file := r.Line, r.File
	*r = Request{} // in place: with its fields in the literal it would be made elsewhere and copied
	r.DurationNS, r.Bytes, r.BodyBytes, r.Line, r.File = -1, -1, -1, line, file
}

// toOrigin makes a target that is an absolute URL, as Squid and varnishncsa log it, what a server is asked for: a path
// (RFC 9112, 3.2.1). Its host is kept, without what a Host header has not: a user, and the scheme's own port.
func (r *Request) toOrigin() {
	if len(r.Target) == 0 || r.Target[0] == '/' {
		return
	}
	for _, scheme := range [...]struct{ begins, port string }{{"http://", ":80"}, {"https://", ":443"}} {
		n := len(scheme.begins)
		if len(r.Target) < n || !bytes.EqualFold(r.Target[:n], []byte(scheme.begins)) {
			continue
		}
		host, path := r.Target[n:], []byte(nil)
		if end := bytes.IndexAny(host, "/?#"); end >= 0 {
			host, path = host[:end], host[end:]
		}
		if len(path) == 0 || path[0] != '/' {
			path = append([]byte{'/'}, path...)
		}
		host = host[bytes.LastIndexByte(host, '@')+1:]
		r.Target, r.URLHost = path, bytes.TrimSuffix(host, []byte(scheme.port))
		return
	}
}

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
		c.Token = []byte(redactPart(redact.Line(string(line)), string(clip(r.Token, 256))))
	}
	return &c
}

// redactPart returns a part of a line without secrets, by the line without them: what stands before a part may tell
// that it is one.
func redactPart(safe, part string) string {
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
