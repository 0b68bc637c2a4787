package k6

// k6's samples become records: routes, kinds of errors, measures.

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"

	"plimsoll/replay/record"
	"plimsoll/replay/route"
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

const longestName = 48

// routes numbers what a script's requests are called: few names, never an address. One goroutine asks for numbers;
// names may be read by any.
type routes struct {
	kinds   *route.Namer
	numbers map[string]uint16
	mu      sync.Mutex
	names   []string
}

func newRoutes() *routes { return &routes{kinds: route.New(nil), numbers: map[string]uint16{}} }

// number returns the route of a request with these tags: its tag `step`; else `name` where the script gave one; else
// its group; else the kind of its address. Past 64 names it is `other`.
func (r *routes) number(tag func(string) string) uint16 {
	name := r.called(tag)
	if number, ok := r.numbers[name]; ok {
		return number
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) >= route.Limit && name != route.Other {
		if number, ok := r.numbers[route.Other]; ok {
			return number
		}
		name = route.Other
	}
	number := uint16(len(r.names))
	r.names = append(r.names, name)
	r.numbers[name] = number
	return number
}

func (r *routes) called(tag func(string) string) string {
	if step := tag("step"); step != "" {
		return short(step)
	}
	name := tag("name")
	if name != "" && !isAddress(name) {
		return short(name)
	}
	if group := tag("group"); group != "" {
		parts := strings.Split(group, "::")
		return short(parts[len(parts)-1])
	}
	if name == "" {
		name = tag("url")
	}
	number := r.kinds.Route([]byte(name)) // before the names are looked at, of which it may be a new one
	return r.kinds.Names()[number]
}

// all returns the names in the order of their numbers.
func (r *routes) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.names...)
}

func isAddress(name string) bool {
	return strings.HasPrefix(name, "/") || strings.Contains(name, "://") || strings.Contains(name, "?")
}

func short(name string) string {
	if utf8.RuneCountInString(name) <= longestName {
		return name
	}
	return string([]rune(name)[:longestName-1]) + "…"
}

// Codes of k6 (lib/netext/httpext/error_codes.go) that mean one kind of error.
var exactKinds = map[int]record.ErrorKind{
	1050: record.Timeout, 1201: record.WriteFailed, 1211: record.Timeout, 1212: record.ConnectRefused, 1220: record.Reset,
	1701: record.BadResponse,
}

var kindRanges = []struct {
	first, last int
	kind        record.ErrorKind
}{
	{1100, 1109, record.ConnectFailed}, // the name cannot be resolved
	{1110, 1111, record.Other},         // k6's own blockHostnames and blacklistIPs: it was never sent
	{1210, 1219, record.ConnectFailed},
	{1300, 1399, record.TLSFailed},
	{1610, 1699, record.H2Refused},
}

// Code 1000 is all that k6 has no code for; its text is Go's own.
var kindWords = []struct {
	words string
	kind  record.ErrorKind
}{
	{"malformed HTTP", record.BadResponse},
	{"transport connection broken", record.BadResponse},
	{"EOF", record.ClosedEarly},
	{"server closed", record.ClosedEarly},
	{"connection reset", record.Reset},
	{"broken pipe", record.WriteFailed},
	{"context canceled", record.Aborted},
	{"timeout", record.Timeout},
}

// errorKind returns the kind for k6's tags error_code (0: none), error and status, as
// plimsoll/analysis/exchange/k6_samples.py has it. A whole response is not an error, whatever its status: k6's codes
// 1400 to 1599 only repeat that.
func errorKind(code int, text string, status int) record.ErrorKind {
	if status > 0 || code == 0 && text == "" {
		return record.None
	}
	if kind, ok := exactKinds[code]; ok {
		return kind
	}
	for _, r := range kindRanges {
		if code >= r.first && code <= r.last {
			return r.kind
		}
	}
	for _, w := range kindWords {
		if strings.Contains(text, w.words) {
			return w.kind
		}
	}
	return record.Other
}

// Bounds of what is kept of a script's trends: every value is a line of events.jsonl.
const (
	mostTrends = 64
	mostValues = 1000
)

// trends are a script's own trends of times: times that belong to no single request.
type trends struct{ counts map[string]int }

func newTrends() *trends { return &trends{counts: map[string]int{}} }

// event returns the value as an event, if the sample belongs to a trend of times and there is still room for it.
func (m *trends) event(sample metrics.Sample, since time.Duration) (record.Event, bool) {
	metric := sample.Metric
	if metric.Type != metrics.Trend || metric.Contains != metrics.Time || strings.HasPrefix(metric.Name, "http_req") ||
		strings.HasPrefix(metric.Name, "plimsoll_") {
		return record.Event{}, false
	}
	name := metric.Name
	if about, ok := sample.Tags.Get("page"); ok {
		name += ": " + short(about)
	}
	if _, known := m.counts[name]; !known && len(m.counts) >= mostTrends {
		return record.Event{}, false
	}
	if m.counts[name]++; m.counts[name] > mostValues {
		return record.Event{}, false
	}
	more := map[string]any{"name": name, "value": sample.Value, "unit": "ms"}
	return record.Event{TNS: max(0, since.Nanoseconds()), Name: "measure", More: more}, true
}
