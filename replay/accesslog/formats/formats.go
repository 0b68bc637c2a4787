// Package formats holds the log formats that Plimsoll knows. Those of web servers are in servers.go, those of what
// stands before web servers or in their place in proxies.go. To add one, write it there and put it into Named; one
// without a name is a row of serverVariants or proxyVariants, and needs nothing else.
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
	haproxy, haproxyCLF, traefik, npm, npmStandard, cloudflare, fastly, bunny,
}

// Unnamed are formats without a name, in the order in which detection prefers them.
var Unnamed = slices.Concat(proxyVariants, serverVariants)

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
	ZeroStatus  bool   // a status of 0 or -1 is a request that was given up, not a mistake
	NamesFields bool   // comments of the log name its fields
	ClientKey   string // in JSON: the key whose client takes precedence
	Server      string // the one whose meaning of the time is taken, where several write the format
	Keys        string // of JSON: what is read, as the documentation has it
	Sample      Sample
}

// Variant is a format without a name, known by what it is. One that is detected is tried on logs that no format with a
// name reads.
type Variant struct {
	Label, Log string
	IsDetected bool
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
	// EscapeHash is HAProxy's: #XX for quotes, hashes and control characters.
	EscapeHash
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

// Nearest returns the name that a word was probably meant to be: two letters of it are others at most; "" if none is.
func Nearest(word string) (name string) {
	least := 3
	for i := range Named {
		if n := edits(strings.ToUpper(word), Named[i].Name); n < least {
			name, least = Named[i].Name, n
		}
	}
	return name
}

// edits returns how many letters have to be added, removed or changed to make b of a (Levenshtein's distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

var recording = Format{
	// Ours: what nginx writes by the log_format of docs/record.md, and what GoReplay's files and HAR are read as.
	Name: "RECORDING", Log: `{ "time": "%x.%^", "client": "%h", "user": "%e", "method": "%m", "host": "%v", "target": "%U", ` +
		`"protocol": "%H", "status": "%s", "bytes": "%b", "duration": "%T", "referer": "%R", "agent": "%u", ` +
		`"type": "%Y", "length": "%l", "body": "%B" }`,
	Date: "%s", Time: "%s", DateTime: "%s", Resolution: time.Millisecond, LogTime: Finished, Escape: EscapeNone,
	ZeroStatus: true,
	Keys:       "`time`, `client`, `user`, `method`, `host`, `target`, `protocol`, `status`, `bytes`, `duration`, `referer`, `agent`, `type`, `length`, `body`; Plimsoll's own, see [record.md](record.md)",
	Sample: Sample{
		Newer: true, Valid: 3, Failed: 2, Why: "bodies with what JSON escapes, null, nothing; a line cut off, one without a client",
		Lines: []string{
			`{"time":"1760100936.756","client":"198.51.100.9","user":"","method":"POST","host":"www.example.com","target":"/wp-comments-post.php","protocol":"HTTP/1.1","status":"302","bytes":"0","duration":"0.120","referer":"https://www.example.com/?p=1","agent":"Mozilla/5.0","type":"application/x-www-form-urlencoded","length":"44","body":"comment=Na+\"so\"+was%21&comment_post_ID=1\u0000\u000d\u000a"}`,
			`{"time":"1760100937.001","client":"198.51.100.9","user":"","method":"GET","host":"www.example.com","target":"/","protocol":"HTTP/2.0","status":"200","bytes":"17","duration":"0.003","referer":"","agent":"","type":"","length":"","body":""}`,
			`{"time":1760100938.25,"client":"2001:db8::1","method":"HEAD","target":"/","status":0,"body":null}`,
			`{"time":"1760100939.000","client":"198.51.100.9","method":"POST","target":"/login","body":"pwd=hun`,
			`{"time":"1760100939.000","method":"POST","target":"/login"}`,
		},
	},
}
