package k6

import (
	"strings"

	"plimsoll/replay/record"
)

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
