package accesslog

import "time"

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

// LogTime is the instant of a request that a log's timestamp stands for.
type LogTime int

const (
	// Received is when the request arrived: Apache's %t.
	Received LogTime = iota
	// Finished is when the response was sent: nginx's $time_local.
	Finished
)

func (t LogTime) String() string {
	if t == Finished {
		return "finished"
	}
	return "received"
}

// Format is a compiled log format together with the scratch space of one parser. It is not safe for concurrent use;
// Clone is cheap and gives another goroutine its own.
type Format struct {
	*program
	base  *program // as it was compiled; a comment of the log may name other fields
	named []byte   // that comment

	doubts string
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
	logTime      LogTime
	escape       Escape
	strictHosts  bool
	vhostIsLabel bool   // %v names a router, a balancer or a bucket, not the host that was asked for
	lastVHost    bool   // of several %v the last one is the host that was asked for
	zeroStatus   bool   // status 0 is a request that was given up, not a mistake
	namesFields  bool   // comments of the log name its fields
	hasBodies    bool   // some field is the body of the request
	clientKey    string // in JSON: the key whose client takes precedence; "" for none
}

// Name returns the preset's name, or the format string itself.
func (f *Format) Name() string { return f.name }

// Doubts says how many of the first lines the format reads that speak against it, where it was detected; "" for none.
func (f *Format) Doubts() string { return f.doubts }

// Spec returns all that was compiled: what the user said, and what the preset says where the user said nothing.
func (f *Format) Spec() Spec { return f.spec }

// LogFormat returns the goaccess log-format string that was compiled.
func (f *Format) LogFormat() string { return f.log }

// Resolution returns the finest difference between two timestamps that the format can express.
func (f *Format) Resolution() time.Duration { return f.resolution }

// LogTime returns the instant of a request that Request.TimeNS stands for.
func (f *Format) LogTime() LogTime { return f.logTime }

// HasBodies reports whether the log is a recording: it has the bodies of requests.
func (f *Format) HasBodies() bool { return f.hasBodies }

// Escape returns how the server escaped the fields that clients can write into its log.
func (f *Format) Escape() Escape { return f.escape }

// RefererEscape returns how the server escaped the referer, in which IIS's plus sign is one: a URL has no spaces.
func (f *Format) RefererEscape() Escape {
	if f.escape == EscapePlus {
		return EscapeNone
	}
	return f.escape
}

// TargetEscape returns how the server escaped the request target. It differs from Escape where a server marks only
// header fields, as IIS does with its plus signs.
func (f *Format) TargetEscape() Escape {
	if f.escape == EscapeBackslash {
		return EscapeBackslash
	}
	return EscapeNone
}
