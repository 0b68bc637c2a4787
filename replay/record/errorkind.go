package record

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
