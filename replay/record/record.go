// Package record writes run directories, and reads them back. Their format is described in docs/run-format.md.
package record

import (
	"encoding/binary"
	"fmt"
	"strings"

	"plimsoll/replay/served"
)

// Record is one request that was sent: what was measured, what the log says, and what became of it.
type Record struct {
	DueNS       int64  // when it was due, since the start of the run
	LagUS       uint32 // start − due
	DNSUS       uint32
	ConnectUS   uint32
	TLSUS       uint32
	TTFBUS      uint32 // start → first byte; 0 when no byte came
	TotalUS     uint32 // start → last byte, or → the failure
	Bytes       int64  // of the body, received
	LoggedBytes int64  // −1 unknown
	Line        uint64 // log line (low 48 bits, from 1) and index of the log file (high 16 bits), or iteration
	Client      uint32
	Route       uint16
	Status      uint16 // 0 when no response came
	// LoggedStatus is 0 where the log does not know.
	LoggedStatus uint16
	Error        ErrorKind
	Flags        Flags
	// LateUS is due → handed to a client's connections, or to their queue; UnknownLateUS where only that a request
	// waited is known.
	LateUS   uint32
	Served   served.By // what answered
	Page     uint32    // the page that it belongs to; 0 unknown
	PausedUS uint32    // pauses of the program's own while it read the body
}

// Size is the length of one packed record in bytes, sizeV1 that of one in format 1.
const (
	Size   = 81
	sizeV1 = 68
)

// UnknownLateUS is the LateUS of a record that does not have it. The lesser of it and the lag is the whole lag: all that
// may be the generator's.
const UnknownLateUS = 1<<32 - 1

// Flags say how a request was sent.
type Flags uint8

const (
	Reused Flags = 1 << iota // the connection had been used before
	HTTP2
	TLS
	Warmup       // kept, but left out of every statistic
	Queued       // waited for a connection, so its lag is not the generator's
	Member       // went out with a member's cookies
	SentToLogin  // a member's, answered by a redirect to the login
	ClientQueued // waited for a connection of its own client, which had all that it may have: the model's wait, not the server's
)

// ResponseUS returns done − due, the time that a visitor waits. It takes 33 bits where both parts are saturated.
func (r *Record) ResponseUS() uint64 { return uint64(r.LagUS) + uint64(r.TotalUS) }

// GeneratorLateUS returns how much of the response time is the generator's own lateness: the whole lag of a request that
// did not wait for a connection.
func (r *Record) GeneratorLateUS() uint32 {
	if r.Flags&Queued == 0 {
		return r.LagUS
	}
	return r.LateUS
}

// Failed reports whether a request is a failure: it got no whole response, or a wrong answer. That is a status of 500 or
// more where the log has a lower one or none, 429 where it has another or none, and one of 400 or more where it has one
// below 400. The same rule is in plimsoll/analysis/statistics/requests.py; tests/fixtures/failures.json holds them
// together.
func (r *Record) Failed() bool {
	overloaded := r.Status >= 500 && r.LoggedStatus < 500
	refused := r.Status == 429 && r.LoggedStatus != 429
	unasked := r.Status >= 400 && r.LoggedStatus != 0 && r.LoggedStatus < 400
	return r.Error != None || overloaded || refused || unasked
}

// wasNeverSent reports whether a request waited for a connection of its own client until its time was up.
func (r *Record) wasNeverSent() bool {
	return r.Flags&ClientQueued != 0 && r.Error == Timeout && r.TotalUS == 0
}

// DoneNS returns when the request was done, since the start of the run.
func (r *Record) DoneNS() int64 { return r.DueNS + int64(r.ResponseUS())*1000 }

// SaturatedUS turns nanoseconds into whole microseconds, cut off at both ends: negative ones are 0 and those
// over 71 minutes are 4294967295.
func SaturatedUS(ns int64) uint32 {
	us := ns / 1000
	switch {
	case us < 0:
		return 0
	case us > 1<<32-1:
		return 1<<32 - 1
	}
	return uint32(us)
}

// Line numbers are packed with the index of their file.
const lineBits = 48

// PackLine joins the index of a log file (in run.json's logs) and a line number from 1.
func PackLine(file int, line uint64) uint64 {
	return uint64(file)<<lineBits | line&(1<<lineBits-1)
}

// put packs the record into b, which has Size bytes.
func (r *Record) put(b *[Size]byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(r.DueNS))
	le.PutUint32(b[8:], r.LagUS)
	le.PutUint32(b[12:], r.DNSUS)
	le.PutUint32(b[16:], r.ConnectUS)
	le.PutUint32(b[20:], r.TLSUS)
	le.PutUint32(b[24:], r.TTFBUS)
	le.PutUint32(b[28:], r.TotalUS)
	le.PutUint64(b[32:], uint64(r.Bytes))
	le.PutUint64(b[40:], uint64(r.LoggedBytes))
	le.PutUint64(b[48:], r.Line)
	le.PutUint32(b[56:], r.Client)
	le.PutUint16(b[60:], r.Route)
	le.PutUint16(b[62:], r.Status)
	le.PutUint16(b[64:], r.LoggedStatus)
	b[66] = byte(r.Error)
	b[67] = byte(r.Flags)
	le.PutUint32(b[68:], r.GeneratorLateUS())
	b[72] = byte(r.Served)
	le.PutUint32(b[73:], r.Page)
	le.PutUint32(b[77:], r.PausedUS)
}

// get unpacks b, which has the bytes of one record of either format, into the record.
func (r *Record) get(b []byte) {
	le := binary.LittleEndian
	_ = b[sizeV1-1]
	*r = Record{
		DueNS: int64(le.Uint64(b[0:])),
		LagUS: le.Uint32(b[8:]), DNSUS: le.Uint32(b[12:]), ConnectUS: le.Uint32(b[16:]),
		TLSUS: le.Uint32(b[20:]), TTFBUS: le.Uint32(b[24:]), TotalUS: le.Uint32(b[28:]),
		Bytes: int64(le.Uint64(b[32:])), LoggedBytes: int64(le.Uint64(b[40:])),
		Line: le.Uint64(b[48:]), Client: le.Uint32(b[56:]),
		Route: le.Uint16(b[60:]), Status: le.Uint16(b[62:]), LoggedStatus: le.Uint16(b[64:]),
		Error: ErrorKind(b[66]), Flags: Flags(b[67]),
	}
	if len(b) < Size {
		r.LateUS = UnknownLateUS
		r.LateUS = r.GeneratorLateUS()
		return
	}
	r.LateUS, r.Served, r.Page, r.PausedUS = le.Uint32(b[68:]), served.By(b[72]), le.Uint32(b[73:]), le.Uint32(b[77:])
}

// ErrorKind says why a request failed. None is a whole response, whatever its status.
type ErrorKind uint8

const (
	None ErrorKind = iota
	ConnectRefused
	ConnectFailed
	TLSFailed
	Timeout
	Reset
	ClosedEarly
	BadResponse
	WriteFailed
	H2Refused
	Aborted
	Other
)

var errorNames = [...]string{
	None:           "none",
	ConnectRefused: "connect_refused",
	ConnectFailed:  "connect_failed",
	TLSFailed:      "tls_failed",
	Timeout:        "timeout",
	Reset:          "reset",
	ClosedEarly:    "closed_early",
	BadResponse:    "bad_response",
	WriteFailed:    "write_failed",
	H2Refused:      "h2_refused",
	Aborted:        "aborted",
	Other:          "other",
}

// ErrorNames returns the names of the error kinds in the order of their numbers, as in errors.json.
func ErrorNames() []string { return append([]string(nil), errorNames[:]...) }

// String returns the kind's name in errors.json.
func (k ErrorKind) String() string {
	if int(k) < len(errorNames) {
		return errorNames[k]
	}
	return errorNames[Other]
}

// The header of requests.npy takes this many bytes whatever the number of records, so that it can be rewritten
// in place. Format: NEP 1, version 1.0: magic, version, length of the rest (u2, little endian), then a Python
// literal padded with spaces to its final line feed.
const headerSize = 512

// The shape is at a fixed place and has a fixed width, so that updating it is one write of a few bytes
// within one page: no reader can see half of a header.
const shapeDigits = 20

var columns = [...][2]string{
	{"due_ns", "<i8"}, {"lag_us", "<u4"}, {"dns_us", "<u4"}, {"connect_us", "<u4"}, {"tls_us", "<u4"},
	{"ttfb_us", "<u4"}, {"total_us", "<u4"}, {"bytes", "<i8"}, {"logged_bytes", "<i8"}, {"line", "<u8"},
	{"client", "<u4"}, {"route", "<u2"}, {"status", "<u2"}, {"logged_status", "<u2"}, {"error", "|u1"}, {"flags", "|u1"},
	{"late_us", "<u4"}, {"served", "|u1"}, {"page", "<u4"}, {"paused_us", "<u4"},
}

const columnsV1 = 16 // those of format 1

var (
	headerText, shapeOffset     = header(len(columns))
	headerTextV1, shapeOffsetV1 = header(columnsV1)
)

// header returns the header of no records with the first so many columns, and where the number of records stands in it.
func header(n int) (string, int64) {
	var b strings.Builder
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write([]byte{(headerSize - 10) & 0xff, (headerSize - 10) >> 8})
	b.WriteString("{'descr': [")
	for i, c := range columns[:n] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "('%s', '%s')", c[0], c[1])
	}
	b.WriteString("], 'fortran_order': False, 'shape': (")
	at := b.Len()
	b.WriteString(shapeText(0))
	b.WriteString(",), }")
	b.WriteString(strings.Repeat(" ", headerSize-1-b.Len()))
	b.WriteByte('\n')
	return b.String(), int64(at)
}

// shapeText returns the number of records, padded to a fixed width.
func shapeText(records int64) string { return fmt.Sprintf("%*d", shapeDigits, records) }
