// Package formats are the log formats that are known, one file a server. To add one, write a file like these, and name
// what is in it in Named or in Unnamed.
package formats

import (
	"slices"
	"strings"
	"time"
)

// Named are the formats that have a name, in the order in which detection prefers them where they read a log equally
// well.
var Named = []Format{
	vcombined, combined, traefikCLF, vcommon, common, w3c, cloudFront,
	cloudStorage, awsALB, awsELB, awsS3, squid, caddy, recording,
}

// Unnamed are formats that goaccess has no name for, in the order in which they are suggested.
var Unnamed = slices.Concat(
	squidVariants, haproxyVariants, vhostVariants, traefikVariants, forwardedVariants, awsVariants, combinedVariants,
	nginxVariants, iisVariants,
)

// Format is a log format with a name. The strings and their date and time formats are those of goaccess's manual page;
// what the time stamp means is from the documentation of the server that writes the log.
type Format struct {
	Name        string
	Log         string // goaccess's log-format
	Date, Time  string // strftime formats of %d and %t
	DateTime    string // of %x
	Resolution  time.Duration
	LogTime     LogTime
	Escape      Escape
	HostIsLabel bool   // %v names a router, a balancer or a bucket, not the host that was asked for
	LastVHost   bool   // of several %v the last one is the host that was asked for
	ZeroStatus  bool   // status 0 is a request that was given up, not a mistake
	NamesFields bool   // comments of the log name its fields
	ClientKey   string // in JSON: the key whose client takes precedence
	Server      string // the one whose meaning of the time is taken, where several write the format
	Keys        string // of JSON: what is read, as the documentation has it
	Sample      Sample
}

// Variant is a format without a name. One that is suggested is tried on logs that no format with a name reads.
type Variant struct {
	Name, Log   string
	IsSuggested bool
}

// Sample is a small log in a format, and what goaccess makes of it. Its lines are made up after the documentation of
// the server.
type Sample struct {
	Lines         []string
	Valid, Failed int
	Why           string // what is special about it
	Newer         bool   // than goaccess 1.7, which does not know the format, or reads it otherwise
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

// Escape is how a server writes bytes that would break its log's lines or fields.
type Escape uint8

const (
	// EscapeNone leaves them as they are.
	EscapeNone Escape = iota
	// EscapeBackslash is Apache's \" \\ \n \t \r \b \v \xhh, which includes nginx's \xHH and Traefik's \uhhhh.
	EscapeBackslash
	// EscapePlus is IIS's: a plus sign in a header field is a space.
	EscapePlus
	// EscapePercent is CloudFront's: %XX in a header field, for some fields twice over.
	EscapePercent
)

// Formats of dates and times that several servers write.
const (
	DateApache = "%d/%b/%Y"
	DateW3C    = "%Y-%m-%d"
	Time24     = "%H:%M:%S"
)

// Find returns the format of a name, in any case.
func Find(name string) (*Format, bool) {
	for i := range Named {
		if strings.EqualFold(Named[i].Name, name) {
			return &Named[i], true
		}
	}
	return nil, false
}
