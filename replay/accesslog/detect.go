package accesslog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownFormat is what Detect's error is when no preset reads the log.
var ErrUnknownFormat = errors.New("no known format matches this log")

// Trial is the result of reading the first lines of a log with one preset.
type Trial struct {
	Name   string
	Valid  int    // lines that were requests
	Lines  int    // lines that were read
	Fields int    // fields with a value in the valid ones
	Failed string // why the first of the other lines did not fit

	doubtful int    // lines that are read, but hardly rightly
	doubt    string // why the first of them
}

// lookalikes are well-known formats that goaccess has no preset for, each with the string that reads it.
var lookalikes = [...]struct{ name, log string }{
	{"Squid's own access.log", `%x %~%L %h %^/%s %b %m %U %^`},
	{"HAProxy's log of HTTP behind syslog", `%^]: %h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`},
	{"HAProxy's log of HTTP", `%h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`},
	{vhostWithoutPort, `%v %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`},
	{vhostWithoutPort, `%v %h %^[%d:%t %^] "%r" %s %b`},
	{"Traefik's JSON", `{"StartUTC":"%x","ClientHost":"%h","RequestMethod":"%m","RequestHost":"%v","RequestPath":"%U","RequestProtocol":"%H","DownstreamStatus":"%s","DownstreamContentSize":"%b","Duration":"%n","request_User-Agent":"%u","request_Referer":"%R"}`},
	{"a log with X-Forwarded-For first", `"~h{, }" %^ %^[%d:%t %^] "%r" %s %b "%R" "%u"`},
	{"the log of a classic load balancer of AWS", `%x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u"`},
	{"a combined format with an ISO 8601 time", `%h %^[%x] "%r" %s %b "%R" "%u"`},
}

const vhostWithoutPort = "a log with the virtual host first, without a port"

// Detect finds the preset that reads the most of a log's first lines; of those that read as many, the one that finds
// the most in them. It returns the trial of each preset, best first, also with an error.
func Detect(lines [][]byte, strict bool) (*Format, []Trial, error) {
	all := lines
	lines = slices.DeleteFunc(slices.Clone(lines), Ignored)
	if len(lines) == 0 {
		return nil, nil, fmt.Errorf("%w: it has no lines to detect one from", ErrUnknownFormat)
	}
	trials := make([]Trial, 0, len(presets))
	for i := range presets {
		f, err := Compile(Spec{Log: presets[i].name, StrictHosts: strict})
		if err != nil {
			return nil, nil, err
		}
		trials = append(trials, f.try(all))
	}
	slices.SortStableFunc(trials, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(b.Valid, a.Valid), cmp.Compare(b.Fields, a.Fields))
	})
	if best := trials[0]; best.Valid*2 > best.Lines {
		f, err := Compile(Spec{Log: best.Name, StrictHosts: strict})
		if err == nil && best.doubtful > 0 {
			f.doubts = fmt.Sprintf("%d of the first %d lines are hardly what %s reads them as: %s",
				best.doubtful, best.Lines, best.Name, best.doubt)
		}
		return f, trials, err
	}
	if name, _ := lookalike(lines); name == "" {
		if f := behindPrefix(lines, strict); f != nil {
			return f, trials, nil
		}
	}
	return nil, trials, undetected(lines, trials, lastFields(bytes.Join(all, []byte{'\n'})), strict)
}

// try reads lines with a format.
func (f *Format) try(lines [][]byte) Trial {
	t := Trial{Name: f.name}
	var r Request
	for _, line := range lines {
		if Ignored(line) {
			f.comment(line)
			continue
		}
		t.Lines++
		why := ""
		if reject := f.Parse(line, &r); reject != nil {
			if why = reject.Specifier; t.Failed == "" {
				why = reject.Clone(line).Error()
			}
		} else if why = f.doubt(line, &r); why != "" {
			if t.doubtful++; t.doubtful == 1 {
				t.doubt = why
			}
		}
		if why == "" {
			t.Valid++
			t.Fields += known(&r)
		} else if t.Failed == "" {
			t.Failed = why
		}
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

func undetected(lines [][]byte, trials []Trial, fields []byte, strict bool) error {
	var read []string
	for _, t := range trials {
		if t.Valid > 0 {
			read = append(read, fmt.Sprintf("%s read %d", t.Name, t.Valid))
		}
	}
	if len(read) == 0 {
		read = []string{"none read any"}
	}
	tried := "first line"
	if len(lines) > 1 {
		tried = fmt.Sprintf("first %d lines", len(lines))
	}
	why := fmt.Sprintf("tried %d presets on its %s: %s", len(trials), tried, strings.Join(read, ", "))
	if lacks := lacking(strings.Fields(string(bytes.TrimPrefix(fields, []byte(fieldsPrefix))))); fields != nil && lacks != "" {
		return fmt.Errorf("%w (%s). Its %s line %s: have the server log date, time, c-ip, cs-method and cs-uri-stem",
			ErrUnknownFormat, why, fieldsPrefix, lacks)
	}
	if first, last := ambiguous(lines); first != "" {
		return fmt.Errorf("%w (%s). Two fields of it may be the client: use --format '%s' or --format '%s'%s",
			ErrUnknownFormat, why, first, last, readings(lines, first, last))
	}
	if name, log := lookalike(lines); name != "" {
		return fmt.Errorf("%w (%s). It looks like %s: use --format '%s' (make: FORMAT='%s')%s",
			ErrUnknownFormat, why, name, log, log, readings(lines, log))
	}
	if fields == nil {
		return fmt.Errorf("%w (%s). %s", ErrUnknownFormat, why, describe(lines, strict))
	}
	return fmt.Errorf("%w (%s). By its %s line it failed first: %s. Give the format as a goaccess log-format string: --format '…' (make: FORMAT='…')",
		ErrUnknownFormat, why, fieldsPrefix, trials[slices.IndexFunc(trials, func(t Trial) bool { return t.Name == "W3C" })].Failed)
}

func lookalike(lines [][]byte) (name, log string) {
	best := 0
	for _, l := range lookalikes {
		f, err := Compile(Spec{Log: l.log, StrictHosts: true})
		if err != nil {
			continue
		}
		if t := f.try(lines); t.Valid*2 > len(lines) && t.Valid > best {
			name, log, best = l.name, l.log, t.Valid
		}
	}
	return name, log
}
