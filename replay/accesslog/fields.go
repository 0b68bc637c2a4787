package accesslog

import (
	"bytes"
	"slices"
	"strings"
)

// fieldsPrefix is what a comment begins with that names the fields of the lines after it (W3C's extended log format).
const fieldsPrefix = "#Fields:"

// w3cFields are the fields that a replay has a use for; all others are skipped.
var w3cFields = map[string]string{
	"date": "%d", "time": "%t", "c-ip": "%h", "cs-method": "%m", "cs-uri-stem": "%U", "cs-uri-query": "%q",
	"cs(User-Agent)": "%u", "cs(Referer)": "%R", "cs-host": "%v", "cs(Host)": "%v", "sc-status": "%s", "sc-bytes": "%b",
	"time-taken": "%L", // as IIS has it
}

// comment follows a line that is a comment: one that names fields holds from there on, as IIS writes one each time it
// starts, or its fields are changed.
func (f *Format) comment(line []byte) {
	if !f.base.namesFields || !bytes.HasPrefix(line, []byte(fieldsPrefix)) {
		return
	}
	if !bytes.Equal(line, f.named) || f.program == f.base {
		f.named, f.program = bytes.Clone(line), f.base.withFields(string(line[len(fieldsPrefix):]))
	}
}

// from starts at a line whose fields a comment before it names; nil: none does.
func (f *Format) from(comment []byte) {
	f.program = f.base
	f.comment(comment)
}

// withFields returns the program that reads these fields. What it lacks is reported for each line.
func (p *program) withFields(names string) *program {
	fields := strings.Fields(names)
	separator := " "
	if strings.Contains(strings.TrimSpace(names), "\t") {
		separator = "\t"
	}
	formats := make([]string, len(fields))
	for i, name := range fields {
		switch formats[i] = w3cFields[name]; {
		case formats[i] == "":
			formats[i] = "%^"
		case name == "time-taken" && slices.Contains(fields, "sc-servicename"): // NetScaler, by Citrix's guide
			formats[i] = "%T"
		}
	}
	q := *p
	q.ops, _ = compileOps(strings.Join(formats, separator))
	for i := range q.ops {
		q.ops[i].quotes = q.ops[i].kind != opLiteral // IIS Advanced Logging and others write texts with spaces in quotes
	}
	if lacks := lacking(fields); lacks != "" {
		q.ops = []op{{kind: opLack, set: lacks}}
	}
	return &q
}

// lacking says which field that a request needs is not among the named ones; "" for none.
func lacking(fields []string) string {
	for _, name := range []string{"date", "time", "c-ip", "cs-method", "cs-uri-stem"} {
		if !slices.Contains(fields, name) {
			return "does not name " + name + ", which a request needs"
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
