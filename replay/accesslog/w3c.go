package accesslog

// Logs that name their own fields, in a comment before the lines that have them: W3C's extended log format.

import (
	"bytes"
	"slices"
	"strings"
)

// fieldsPrefix is what such a comment begins with.
const fieldsPrefix = "#Fields:"

// w3cFields are the fields that a replay has a use for, in lower case; all others are skipped. Where a log has several
// of one kind, the first in this order is read.
var w3cFields = [...]struct{ name, format string }{
	{"date", "%d"}, {"date-local", "%d"}, {"time", "%t"}, {"time-local", "%t"}, // -local: IIS Advanced Logging
	{"c-ip", "%h"},
	{"cs-method", "%m"},
	{"cs-uri-stem", "%U"}, {"cs-uri", "%U"}, {"cs-uri-query", "%q"},
	{"cs(user-agent)", "%u"},
	{"cs(referer)", "%R"}, {"cs(referrer)", "%R"}, // Incapsula
	{"x-host-header", "%v"}, {"cs-host", "%v"}, {"cs(host)", "%v"},
	{"sc-status", "%s"}, {"c-status", "%s"}, // SHOUTcast
	{"sc-bytes", "%b"},
	{"time-taken", "%L"}, {"timetakenms", "%L"}, {"x-duration", "%T"},
}

// CloudFront's logs have a field of their own, by which they are known: their escapes and units are others.
const edgeField, edgeFormat = "x-edge-location", "CLOUDFRONT"

// w3cNeeds are the specifiers that a request needs, and the field that has each.
var w3cNeeds = [...]struct{ format, name string }{
	{"%d", "date"}, {"%t", "time"}, {"%h", "c-ip"}, {"%m", "cs-method"}, {"%U", "cs-uri-stem"},
}

// comment follows a line that is a comment: one that names fields holds from there on, as IIS writes one each time it
// starts, or its fields are changed.
func (f *Format) comment(line []byte) {
	if !f.base.namesFields {
		return
	}
	names, ok := cutFields(line)
	if ok && (!bytes.Equal(line, f.named) || f.program == f.base) {
		f.named, f.program = bytes.Clone(line), f.base.withFields(names)
	}
}

// cutFields returns the names of the fields that a comment has.
func cutFields(line []byte) (names string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(fieldsPrefix))
	return strings.TrimSpace(string(rest)), ok
}

// from starts at a line whose fields a comment before it names; nil: none does.
func (f *Format) from(comment []byte) {
	f.program = f.base
	f.comment(comment)
}

// withFields returns the program that reads these fields. What it lacks is reported for each line.
func (p *program) withFields(text string) *program {
	names := strings.Fields(strings.ToLower(text))
	isEdge := slices.Contains(names, edgeField)
	separator := " "
	switch {
	case isEdge, strings.Contains(text, "\t"):
		separator = "\t"
	case strings.Contains(text, "  "): // Oracle Web Cache aligns its lines
		separator = " %~"
	}
	formats := readFields(names)
	q := *p
	q.ops, _ = compileOps(strings.Join(formats, separator))
	for i := range q.ops {
		q.ops[i].quotes = q.ops[i].kind != opLiteral // IIS Advanced Logging and others write texts with spaces in quotes
		q.ops[i].pointed = q.ops[i].spec == 'L'
		q.ops[i].hostFirst = q.ops[i].kind == opURL && slices.Contains(names, "cs-uri")
	}
	q.zeroStatus = true
	if !slices.Contains(formats, "%m") {
		q.method = "GET"
	}
	lacks := missingFields([]byte(fieldsPrefix + text))
	if isEdge && p.name != edgeFormat {
		lacks = "is CloudFront's: --format CLOUDFRONT"
	} else if !isEdge && p.name == edgeFormat {
		lacks = "is not CloudFront's: --format W3C"
	}
	if lacks != "" {
		q.ops = []op{{kind: opLack, set: lacks}}
	}
	return &q
}

// readFields returns what reads each of the named fields.
func readFields(names []string) (formats []string) {
	formats = slices.Repeat([]string{"%^"}, len(names))
	for _, field := range w3cFields {
		at := slices.Index(names, field.name)
		if at < 0 || slices.Contains(formats, field.format) {
			continue
		}
		formats[at] = field.format
		inSeconds := slices.Contains(names, "sc-servicename") || slices.Contains(names, edgeField) // NetScaler, by Citrix's guide
		if field.name == "time-taken" && inSeconds {
			formats[at] = "%T"
		}
	}
	return formats
}

// missingFields says which field that a request needs is not among those that a comment names; "" for none.
func missingFields(comment []byte) string {
	text, _ := cutFields(comment)
	names := strings.Fields(strings.ToLower(text))
	formats := readFields(names)
	for _, need := range w3cNeeds {
		isStream := need.format == "%m" && slices.Contains(names, "c-status")
		if !slices.Contains(formats, need.format) && !isStream {
			return "does not name " + need.name + ", which a request needs"
		}
	}
	return ""
}

// lastFields returns the last comment of a text that names fields; the text begins with a line.
func lastFields(text []byte) []byte {
	for end := len(text); ; {
		at := bytes.LastIndex(text[:end], []byte(fieldsPrefix))
		if at < 0 {
			return nil
		}
		if at == 0 || text[at-1] == '\n' {
			line, _, _ := bytes.Cut(text[at:], []byte{'\n'})
			return line
		}
		end = at
	}
}
