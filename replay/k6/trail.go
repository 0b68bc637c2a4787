package k6

import (
	"strconv"
	"strings"
	"time"

	"go.k6.io/k6/lib/netext/httpext"

	"plimsoll/replay/record"
)

// recordOf makes what k6 knows of a request into a record, as `plimsoll import k6` does (docs/k6.md): it started when
// k6 began to look for a connection, and was due then, since a script has no schedule of requests.
func recordOf(t *httpext.Trail, begun time.Time, routes *routes) record.Record {
	tag := func(name string) string {
		value, ok := t.Tags.Get(name)
		if !ok {
			value = t.Metadata[name]
		}
		return value
	}
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(tag(name), 10, 32)
		return n
	}
	whole := t.Blocked + t.Duration
	status := number("status")
	kind := errorKind(int(number("error_code")), tag("error"), int(status))
	r := record.Record{
		DueNS:     max(0, t.EndTime.Add(-whole).Sub(begun).Nanoseconds()),
		ConnectUS: record.SaturatedUS(t.Connecting.Nanoseconds()), TLSUS: record.SaturatedUS(t.TLSHandshaking.Nanoseconds()),
		TotalUS: record.SaturatedUS(whole.Nanoseconds()), LoggedBytes: -1,
		Client: uint32(number("vu")), Route: routes.number(tag), Status: uint16(status), Error: kind,
	}
	if iteration, err := strconv.ParseUint(tag("iter"), 10, 32); err == nil {
		r.Line = iteration + 1
	}
	if status > 0 {
		r.TTFBUS = max(1, record.SaturatedUS((t.Blocked + t.Sending + t.Waiting).Nanoseconds()))
	}
	if t.ConnReused {
		r.Flags |= record.Reused
	}
	if tag("proto") == "HTTP/2.0" {
		r.Flags |= record.HTTP2
	}
	if tag("tls_version") != "" {
		r.Flags |= record.TLS
	}
	if group := tag("group"); strings.HasPrefix(group, "::setup") || strings.HasPrefix(group, "::teardown") {
		r.Flags |= record.Warmup
	}
	return r
}
