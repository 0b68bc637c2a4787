package accesslog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownFormat is what Detect's error is when no preset reads the log.
var ErrUnknownFormat = errors.New("no known format reads this log")

// Tried is what came of reading the first lines of a log with one preset.
type Tried struct {
	Name   string
	Valid  int    // lines that were requests
	Lines  int    // lines that were read
	Fields int    // fields with a value in the valid ones
	Failed string // why the first of the other lines was none
}

// lookalikes are formats that are well known and are no preset of goaccess, each with the string that reads it.
var lookalikes = [...]struct{ name, log string }{
	{"Squid's own access.log", `%x %~%L %h %^/%s %b %m %U %^`},
	{vhostWithoutPort, `%v %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`},
	{"a log with X-Forwarded-For first", `"~h{, }" %^ %^[%d:%t %^] "%r" %s %b "%R" "%u"`},
	{"a combined format with an ISO 8601 time", `%h %^[%x] "%r" %s %b "%R" "%u"`},
}

// vhostWithoutPort is a log that COMBINED and COMMON would read, and take the virtual host for the client.
const vhostWithoutPort = "a log with the virtual host first, without a port"

// Detect finds the preset that reads the most of a log's first lines; of those that read as many, the one that finds
// the most in them. It answers how each preset fared, best first, also with its error.
func Detect(lines [][]byte, strict bool) (*Format, []Tried, error) {
	lines = slices.DeleteFunc(slices.Clone(lines), Ignored)
	if len(lines) == 0 {
		return nil, nil, fmt.Errorf("%w: it has no lines to tell one by", ErrUnknownFormat)
	}
	tried := make([]Tried, 0, len(presets))
	for i := range presets {
		f, err := Compile(Spec{Log: presets[i].name, StrictHosts: strict})
		if err != nil {
			return nil, nil, err
		}
		tried = append(tried, f.try(lines))
	}
	slices.SortStableFunc(tried, func(a, b Tried) int {
		return cmp.Or(cmp.Compare(b.Valid, a.Valid), cmp.Compare(b.Fields, a.Fields))
	})
	best := tried[0]
	misread := false
	if best.Name == "COMBINED" || best.Name == "COMMON" {
		name, _ := lookalike(lines)
		misread = name == vhostWithoutPort
	}
	if best.Valid*2 > best.Lines && !misread {
		f, err := Compile(Spec{Log: best.Name, StrictHosts: strict})
		return f, tried, err
	}
	return nil, tried, undetected(lines, tried)
}

// try reads lines with a format.
func (f *Format) try(lines [][]byte) Tried {
	t := Tried{Name: f.name, Lines: len(lines)}
	var r Request
	for _, line := range lines {
		if reject := f.Parse(line, &r); reject != nil {
			if t.Failed == "" {
				t.Failed = reject.Error()
			}
			continue
		}
		if !plausibleHost(r.Host) {
			continue
		}
		t.Valid++
		t.Fields += known(&r)
	}
	return t
}

// known counts the fields that have a value. The virtual host is none of them: nearly anything passes for one.
func known(r *Request) (n int) {
	for _, field := range [...][]byte{r.Method, r.Referer, r.UserAgent, r.Protocol} {
		if len(field) > 0 {
			n++
		}
	}
	if r.Status > 0 {
		n++
	}
	if r.DurationNS >= 0 {
		n++
	}
	return n
}

// plausibleHost keeps a format from matching by accident: no client is called "-" or has a quote in its name.
func plausibleHost(b []byte) bool {
	if len(b) == 0 || isDash(b) {
		return false
	}
	for _, c := range b {
		if c <= ' ' || inSet(`"[](){}<>,;=/|`, c) {
			return false
		}
	}
	return true
}

func undetected(lines [][]byte, tried []Tried) error {
	var why strings.Builder
	fmt.Fprintf(&why, "tried %d presets on its first %d lines: ", len(tried), len(lines))
	for i, t := range tried {
		if i > 0 {
			why.WriteString(", ")
		}
		fmt.Fprintf(&why, "%s read %d", t.Name, t.Valid)
	}
	if name, log := lookalike(lines); name != "" {
		return fmt.Errorf("%w (%s). It looks like %s: say --format '%s' (make: FORMAT='%s')", ErrUnknownFormat, &why, name, log, log)
	}
	return fmt.Errorf("%w (%s; %s failed first at %s). Give the format as a goaccess log-format string: --format '…' (make: FORMAT='…')",
		ErrUnknownFormat, &why, tried[0].Name, tried[0].Failed)
}

func lookalike(lines [][]byte) (name, log string) {
	for _, l := range lookalikes {
		f, err := Compile(Spec{Log: l.log, StrictHosts: true})
		if err == nil && f.try(lines).Valid*2 > len(lines) {
			return l.name, l.log
		}
	}
	return "", ""
}
