package accesslog

// The formats that are known by name.

import (
	"slices"
	"strings"
	"time"
)

// preset is a log format with a name. The strings and their date and time formats are those of goaccess's manual
// page; what the timestamp means is from the documentation of the server that writes the log.
//
// To add one, add an entry to presets, a row to the table in docs/log-formats.md and some lines to samples_test.go;
// tests fail until all three agree.
type preset struct {
	name       string
	log        string
	date, time string // for %d and %t, as in Spec
	dateTime   string // for %x
	resolution time.Duration
	logTime    LogTime
	escape     Escape
	label      bool   // %v is not the host that was asked for
	lastVHost  bool   // of several %v the last one is the host that was asked for
	zeroStatus bool   // status 0 is a request that was given up, not a mistake
	fields     bool   // comments of the log name its fields
	clientKey  string // in JSON: the key whose client takes precedence
}

const (
	dateApache = "%d/%b/%Y"
	dateW3C    = "%Y-%m-%d"
	time24     = "%H:%M:%S"
)

// presets are in the order in which Detect prefers them, where they read a log equally well.
var presets = []preset{
	{
		name: "VCOMBINED", log: `%v:%^ %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`,
		date: dateApache, time: time24, resolution: time.Second, escape: EscapeBackslash,
	},
	{
		name: "COMBINED", log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u"`,
		date: dateApache, time: time24, resolution: time.Second, escape: EscapeBackslash,
	},
	{
		// %v is the router's name. goaccess 1.7 does not know this preset, later versions do.
		name: "TRAEFIKCLF", log: `%h - %e [%d:%t %^] "%r" %s %b "%R" "%u" %^ "%v" "%U" %Lms`,
		date: dateApache, time: time24, resolution: time.Second, logTime: Received, escape: EscapeBackslash, label: true,
	},
	{
		name: "VCOMMON", log: `%v:%^ %h %^[%d:%t %^] "%r" %s %b`,
		date: dateApache, time: time24, resolution: time.Second, escape: EscapeBackslash,
	},
	{
		name: "COMMON", log: `%h %^[%d:%t %^] "%r" %s %b`,
		date: dateApache, time: time24, resolution: time.Second, escape: EscapeBackslash,
	},
	{
		name: "W3C", log: `%d %t %^ %m %U %q %^ %^ %h %u %R %s %^ %^ %L`,
		date: dateW3C, time: time24, resolution: time.Second, logTime: Finished, escape: EscapePlus, fields: true,
	},
	{
		// The first %v is cs(Host), the distribution's own name, which goaccess takes. The second is x-host-header, what
		// the visitor asked for; goaccess skips it.
		name: "CLOUDFRONT",
		log:  "%d\t%t\t%^\t%b\t%h\t%m\t%v\t%U\t%s\t%R\t%u\t%q\t%^\t%C\t%^\t%v\t%^\t%^\t%T\t%^\t%K\t%k\t%^\t%H\t%^",
		date: dateW3C, time: time24, resolution: time.Second, logTime: Finished, escape: EscapePercent, lastVHost: true,
	},
	{
		name: "CLOUDSTORAGE", log: `"%x","%h",%^,%^,"%m","%U","%s",%^,"%b","%D",%^,"%R","%u"`,
		date: "%f", time: "%f", dateTime: "%f", resolution: time.Microsecond, logTime: Finished, escape: EscapeNone,
	},
	{
		// %v is the balancer's name.
		name: "AWSALB", log: `%^ %dT%t.%^ %v %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K %^`,
		date: dateW3C, time: time24, resolution: time.Microsecond, logTime: Finished, escape: EscapeBackslash, label: true,
	},
	{
		name: "AWSELB", log: `%^ %dT%t.%^ %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K %^ "%^" "%v"`,
		date: dateW3C, time: time24, resolution: time.Microsecond, logTime: Finished, escape: EscapeBackslash,
	},
	{
		// %v is the bucket.
		name: "AWSS3", log: `%^ %v [%d:%t %^] %h %^"%r" %s %^ %b %^ %L %^ "%R" "%u"`,
		date: dateApache, time: time24, resolution: time.Second, logTime: Received, escape: EscapeNone, label: true,
	},
	{
		// Squid behind syslog; %v is syslog's host. Squid's own file lacks the prefix. goaccess's string ends at %U,
		// and so takes the user, the peer and the content type for a part of the URL.
		name: "SQUID", log: `%^ %^ %^ %v %^: %x.%^ %~%L %h %^/%s %b %m %U %^`,
		date: "%s", time: "%s", dateTime: "%s", resolution: time.Millisecond, logTime: Finished, escape: EscapeNone,
		label: true,
	},
	{
		// client_ip is what newer versions of Caddy log and of goaccess read; remote_ip is what both had before. Caddy
		// knows which proxies to believe, and remote_ip may be one.
		name: "CADDY", log: `{ "ts": "%x.%^", "request": { "client_ip": "%h", "remote_ip": "%h", "proto":"%H", "method": "%m", ` +
			`"host": "%v", "uri": "%U", "headers": {"User-Agent": ["%u"], "Referer": ["%R"] }, ` +
			`"tls": { "cipher_suite":"%k", "proto": "%K" } }, "duration": "%T", "size": "%b", "status": "%s", ` +
			`"resp_headers": { "Content-Type": ["%M"] } }`,
		date: "%s", time: "%s", dateTime: "%s", resolution: time.Microsecond, logTime: Finished, escape: EscapeNone,
		zeroStatus: true, clientKey: "request.client_ip",
	},
	{
		// Ours: what nginx writes by the log_format of docs/record.md, and what GoReplay's files and HAR are read as.
		name: "RECORDING", log: `{ "time": "%x.%^", "client": "%h", "user": "%e", "method": "%m", "host": "%v", "target": "%U", ` +
			`"protocol": "%H", "status": "%s", "bytes": "%b", "duration": "%T", "referer": "%R", "agent": "%u", ` +
			`"type": "%Y", "length": "%l", "body": "%B" }`,
		date: "%s", time: "%s", dateTime: "%s", resolution: time.Millisecond, logTime: Finished, escape: EscapeNone,
		zeroStatus: true,
	},
}

// Presets returns the names of the formats that are known, sorted.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	slices.Sort(names)
	return names
}

func presetNamed(name string) (*preset, bool) {
	for i := range presets {
		if strings.EqualFold(presets[i].name, name) {
			return &presets[i], true
		}
	}
	return nil, false
}

// apply sets what the user did not set to what the preset says.
func (known *preset) apply(p *program, spec *Spec) {
	p.name, p.log = known.name, known.log
	p.logTime, p.escape, p.vhostIsLabel = known.logTime, known.escape, known.label
	p.lastVHost = known.lastVHost
	p.namesFields = known.fields
	p.zeroStatus, p.clientKey = known.zeroStatus, known.clientKey
	if spec.Date == "" && spec.Time == "" && spec.DateTime == "" {
		p.resolution = known.resolution
	}
	if spec.DateTime == "" && spec.Time == "" {
		spec.DateTime = known.dateTime
	}
	if spec.Date == "" {
		spec.Date = known.date
	}
	if spec.Time == "" {
		spec.Time = known.time
	}
}
