package accesslog

// Which format a log has: found by trying each on its first lines, and doubted where it only seems to fit.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"plimsoll/replay/accesslog/formats"
	"plimsoll/replay/redact"
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

// Detect finds the preset that reads the most of a log's first lines; of those that read as many, the one that finds
// the most in them. It returns the trial of each preset, best first, also with an error.
func Detect(lines [][]byte, strict bool) (*Format, []Trial, error) {
	all := lines
	lines = slices.DeleteFunc(slices.Clone(lines), Ignored)
	if len(lines) == 0 {
		return nil, nil, fmt.Errorf("%w: it has no lines to detect one from", ErrUnknownFormat)
	}
	trials := make([]Trial, 0, len(formats.Named))
	for i := range formats.Named {
		f, err := Compile(Spec{Log: formats.Named[i].Name, StrictHosts: strict})
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
			f.warning = fmt.Sprintf("%d of the first %d lines are hardly what %s reads them as: %s",
				best.doubtful, best.Lines, best.Name, best.doubt)
		}
		return f, trials, err
	}
	if _, log := lookalike(lines); log == "" {
		if f := detectBehindPrefix(lines, strict); f != nil {
			return f, trials, nil
		}
	} else if f, err := Compile(Spec{Log: log, StrictHosts: strict}); err != nil || f.namesSites(lines) {
		return f, trials, err
	}
	if g, f := guessFrom(lines); f != nil && g.isNginx {
		f, err := Compile(Spec{Log: g.log, StrictHosts: strict})
		return f, trials, err
	}
	return nil, trials, detectionError(lines, trials, lastFields(bytes.Join(all, []byte{'\n'})), strict)
}

// try reads lines with a format.
func (f *Format) try(lines [][]byte) Trial {
	t := Trial{Name: f.name}
	var r Request
	for _, line := range lines {
		if Ignored(line) || len(trimSpace(line)) == 0 {
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
			t.Fields += countFields(&r)
		} else if t.Failed == "" {
			t.Failed = why
		}
	}
	return t
}

// countFields counts the fields that have a value. The virtual host is none of them: nearly anything passes for one.
func countFields(r *Request) (n int) {
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

func detectionError(lines [][]byte, trials []Trial, fields []byte, strict bool) error {
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
	if lacks := missingFields(fields); fields != nil && lacks != "" {
		return fmt.Errorf("%w (%s). Its %s line %s: have the server log date, time, c-ip, cs-method and cs-uri-stem",
			ErrUnknownFormat, why, fieldsPrefix, lacks)
	}
	if first, last := ambiguous(lines); first != "" {
		return fmt.Errorf("%w (%s). Two fields of it may be the client: use --format '%s' or --format '%s'%s",
			ErrUnknownFormat, why, first, last, showReadings(lines, first, last))
	}
	if label, log := lookalike(lines); label != "" {
		return fmt.Errorf("%w (%s). It looks like %s: use --format '%s' (make: FORMAT='%s')%s",
			ErrUnknownFormat, why, label, log, log, showReadings(lines, log))
	}
	if fields == nil {
		return fmt.Errorf("%w (%s). %s", ErrUnknownFormat, why, describe(lines, strict))
	}
	return fmt.Errorf("%w (%s). By its %s line it failed first: %s. Give the format as a goaccess log-format string: --format '…' (make: FORMAT='…')",
		ErrUnknownFormat, why, fieldsPrefix, trials[slices.IndexFunc(trials, func(t Trial) bool { return t.Name == "W3C" })].Failed)
}

// lookalike returns the format without a name that reads the most of the lines, if it reads more than half.
func lookalike(lines [][]byte) (label, log string) {
	var best Trial
	for _, l := range formats.Unnamed {
		if !l.IsDetected {
			continue
		}
		f, err := Compile(Spec{Log: l.Log, StrictHosts: true})
		if err != nil {
			continue
		}
		if t := f.try(lines); t.Valid*2 > len(lines) && (t.Valid > best.Valid || t.Valid == best.Valid && t.Fields > best.Fields) {
			label, log, best = l.Label, l.Log, t
		}
	}
	return label, log
}

// namesSites reports whether the virtual hosts that a format reads look like those of sites, in most of the lines, and not
// like the names of machines; a format without virtual hosts passes.
func (f *Format) namesSites(lines [][]byte) bool {
	with, without := 0, 0
	var r Request
	for _, line := range lines {
		if f.Parse(line, &r) == nil && r.VHost != nil {
			if hostWord.Match(r.VHost) {
				with++
			} else {
				without++
			}
		}
	}
	return with >= without
}

// protocolMark is what a request line ends with, and hardly anything else in a log has.
var protocolMark = []byte(" HTTP/")

// doubt says what speaks against the format in a line that it reads: a host that is not a host name, a client that
// is not an address although an address follows; "" where nothing does.
func (f *Format) doubt(line []byte, r *Request) string {
	if strings.HasPrefix(f.log, "%v:%^ ") {
		word, _, _ := bytes.Cut(line, []byte{' '})
		if host, port := cutPort(word); port == nil || !isHostName(host) {
			return "%v at column 1 is not a host with its port"
		}
	}
	if host, _ := cutPort(r.VHost); r.VHost != nil && !isHostName(host) {
		return "%v is not a host name: " + quoted(r.VHost)
	}
	if r.Method == nil && strings.Contains(f.log, "%r") && !bytes.Contains(r.Target, protocolMark) && bytes.Contains(line, protocolMark) {
		return "%r is not where the request is: " + quoted(r.Target)
	}
	if n := len(f.ops); n > 0 && f.ops[n-1].kind == opBytes && f.ops[n-1].toEnd && r.Bytes == 0 {
		last := trimSpace(line[bytes.LastIndexByte(line, ' ')+1:])
		if size, ok := parseUint(last); !isDash(last) && (!ok || size > 0) {
			return "the line goes on after %b"
		}
	}
	if !plausibleHost(r.Host) {
		return "%h is not a client: " + quoted(r.Host)
	}
	if bytes.HasPrefix(line, fmt.Appendf(nil, "[%s]:", r.Host)) {
		return "%h is the virtual host: a port follows " + quoted(r.Host)
	}
	words := wordsBeforeTime(line)
	if r.VHost == nil && len(words) == 3 && bytes.IndexByte(words[1], '.') > 0 && hostWord.Match(words[1]) {
		return "a host name stands where %v may be, and is skipped: " + quoted(words[1])
	}
	if isAddress(r.Host) {
		return ""
	}
	for _, w := range words[min(1, len(words)):] {
		if isAddress(w) {
			return "%h is not an address, and one follows it: " + quoted(r.Host)
		}
	}
	name, _ := cutPort(r.Host)
	if len(words) != 3 && (!isHostName(name) || len(words) > 3 && bytes.IndexByte(name, '.') < 0) {
		return "%h is neither an address nor the name of a client: " + quoted(r.Host)
	}
	return ""
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

// cutPort cuts the port off a host; nil where it has none.
func cutPort(b []byte) (host, port []byte) {
	at := bytes.LastIndexByte(b, ':')
	if at < 0 || at == len(b)-1 || isAddress(b) {
		return b, nil
	}
	for _, c := range b[at+1:] {
		if !isDigit(c) {
			return b, nil
		}
	}
	return b[:at], b[at+1:]
}

// isHostName reports whether b may stand in a Host header, without its port: a name, or an address.
func isHostName(b []byte) bool {
	b, _, _ = bytes.Cut(b, []byte{'%'}) // the zone of an IPv6 address
	if bare := bytes.TrimSuffix(bytes.TrimPrefix(b, []byte{'['}), []byte{']'}); isAddress(bare) {
		return true
	}
	letters := false
	for _, c := range b {
		switch {
		case c|0x20-'a' < 26, c == '*', c >= 0x80:
			letters = true
		case !isDigit(c) && c != '.' && c != '-' && c != '_':
			return false
		}
	}
	return letters
}

// wordsBeforeTime returns the words before the time in brackets of a line like Apache's; none of any other line.
func wordsBeforeTime(line []byte) [][]byte {
	for at := 0; ; at++ {
		next := bytes.IndexByte(line[at:], '[')
		if next < 0 {
			return nil
		}
		at += next
		if t := line[at+1:]; len(t) > 12 && isDigit(t[0]) && t[2] == '/' && t[6] == '/' && t[11] == ':' {
			return bytes.Fields(line[:at])
		}
	}
}

// detectBehindPrefix returns the format of a log like Apache's behind what another program writes before each line:
// syslog, a container's runtime. It is nil if the lines have no such prefix, or if the client may be elsewhere.
func detectBehindPrefix(lines [][]byte, strict bool) *Format {
	var best *Format
	var most Trial
	for _, line := range lines[:min(20, len(lines))] {
		words := wordsBeforeTime(line)
		at := len(words) - 3
		if at < 0 {
			continue
		}
		if at == 1 && isHostName(words[0]) {
			return nil // a virtual host, or a machine
		}
		for _, w := range words[:at] {
			if isAddress(bytes.Trim(w, `",`)) && !inSet(":|]>", words[at-1][len(words[at-1])-1]) {
				return nil
			}
		}
		for _, log := range formatsFrom(line, at) {
			f, err := Compile(Spec{Log: log, StrictHosts: strict})
			if err != nil {
				continue
			}
			addresses, err := Compile(Spec{Log: f.log, StrictHosts: true}) // clients that are addresses only
			if err != nil {
				continue
			}
			t := addresses.try(lines)
			if t.Valid*2 > t.Lines && (t.Valid > most.Valid || t.Valid == most.Valid && t.Fields > most.Fields) {
				best, most = f, t
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// formatsFrom returns the formats of a line like Apache's that take the client from a word before the time.
func formatsFrom(line []byte, word int) (logs []string) {
	end := 0
	for i := range word + 1 {
		for isSpace(line[end]) {
			end++
		}
		if i < word {
			for !isSpace(line[end]) {
				end++
			}
		}
	}
	quote := ""
	if line[end] == '"' { // LiteSpeed's whole line is in quotes
		quote = `"`
	}
	prefix := string(line[:end])
	var pieces []string
	trimmed := strings.TrimRight(prefix, " ")
	if trimmed != "" && inSet(":|]>", trimmed[len(trimmed)-1]) {
		mark := trimmed[len(trimmed)-1:]
		pieces = append(pieces, strings.Repeat("%^"+mark, strings.Count(trimmed, mark))+prefix[len(trimmed):])
	}
	words := ""
	for i := 0; i < len(prefix); i++ {
		if prefix[i] == ' ' {
			words += " "
		} else if i == 0 || prefix[i-1] == ' ' {
			words += "%^"
		}
	}
	pieces = append(pieces, words)
	for _, piece := range pieces {
		begin := piece + quote + `%h %^[%d:%t %^] "%r" %s %b`
		logs = append(logs, begin+` "%R" "%u"`, begin+quote)
	}
	return logs
}

// ambiguous returns two formats of which each takes another address for the client.
func ambiguous(lines [][]byte) (first, last string) {
	words := wordsBeforeTime(lines[0])
	at := len(words) - 3
	for i := 0; i < at; i++ {
		if isAddress(words[i]) && isAddress(words[at]) {
			n := 1
			if f, err := Compile(Spec{Log: formatsFrom(lines[0], at)[0]}); err == nil && f.Parse(lines[0], new(Request)) == nil {
				n = 0
			}
			return formatsFrom(lines[0], i)[n], formatsFrom(lines[0], at)[n]
		}
	}
	return "", ""
}

// showReadings shows the first line as each of these formats reads it, and as the preset does that comes nearest.
func showReadings(lines [][]byte, logs ...string) string {
	if len(logs) == 1 {
		for _, preset := range []string{"COMBINED", "COMMON"} {
			if f, err := Compile(Spec{Log: preset}); err == nil && f.Parse(lines[0], new(Request)) == nil {
				logs = append([]string{preset}, logs...)
				break
			}
		}
	}
	if len(logs) < 2 {
		return ""
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	rows := [4]string{"format", "client", "Host", "request"}
	for _, log := range logs {
		var r Request
		f, err := Compile(Spec{Log: log})
		if err != nil || f.Parse(lines[0], &r) != nil {
			return ""
		}
		if i := strings.Index(log, " %^["); i > 0 {
			log = log[:i] + " …"
		}
		rows[0] += "\t" + log
		for i, field := range [][]byte{r.Host, r.VHost, r.Target} {
			text := "–"
			if field != nil {
				text = strconv.QuoteToASCII(string(clip([]byte(redact.Line(string(field))), 40)))
				text = text[1 : len(text)-1]
			}
			rows[i+1] += "\t" + text
		}
	}
	for _, row := range rows {
		fmt.Fprintln(table, "  "+row)
	}
	_ = table.Flush()
	return ". Its first line reads as\n" + strings.TrimRight(out.String(), "\n")
}
