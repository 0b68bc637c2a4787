package accesslog

// A log of no known format: what its lines look like, and the format string that may read them.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"plimsoll/replay/accesslog/formats"
	"plimsoll/replay/redact"
)

var (
	anyMethod = regexp.MustCompile(`\b(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|PROPFIND|CONNECT)\b`)
	errorLog  = regexp.MustCompile(`(?i)\[(\w+:)?(emerg|alert|crit|error|warn|notice|info|debug)\]|\blevel=\w+`)
	hostWord  = regexp.MustCompile(`^[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}(:\d+)?$`)
	agentText = regexp.MustCompile(`^"[A-Za-z][\w.-]*/\d`)
)

// describe says what a log is that no known format reads, and the remedy.
func describe(lines [][]byte, strict bool) string {
	line := firstRequest(lines)
	at := bytes.IndexByte(line, '{')
	g, f := guessFrom(lines)
	switch {
	case len(line) > 1 && line[0] == '<' && !isDigit(line[1]):
		return "It is XML: " + quoted(line) + ". Export the log as text, one line a request"
	case at > 0 && json.Valid(line[at:]):
		log := "FORMAT"
		g := guessFormat(line[at:])
		if _, err := Compile(Spec{Log: g.log}); err == nil {
			log = "'" + g.log + "'"
		}
		return "It is JSON behind a prefix: sed 's/^[^{]*//' LOG | bin/replay parse --format " + log + " -. Its first line reads as\n" + g.columns()
	case at != 0 && errorLog.Match(line):
		return "It is an error log: " + quoted(line) + ". Give the server's access log"
	case f == nil && !anyMethod.Match(line):
		return "None of these lines has a method such as GET, the first is " + quoted(line) + ". Give a log that has the method"
	}
	if f != nil {
		return fmt.Sprintf("By its look, --format '%s' (make: FORMAT='%s') reads %d of them. Check how it takes the first; --format guess takes it so:\n%s",
			g.log, g.log, f.try(lines).Valid, g.columns())
	}
	if text := kinds(lines, strict); text != "" {
		return text
	}
	return g.lacks() + ". Give the format as a goaccess log-format string: --format '…' (make: FORMAT='…'). Its first line looks like\n" +
		g.columns()
}

// kinds says which formats read which part of a log whose lines are of several kinds; "" where none reads any.
func kinds(lines [][]byte, strict bool) string {
	const most = 4
	var known []*Format
	for i := range formats.Named {
		if f, err := Compile(Spec{Log: formats.Named[i].Name, StrictHosts: strict}); err == nil {
			known = append(known, f)
		}
	}
	for _, l := range formats.Unnamed {
		if !l.IsDetected {
			continue
		}
		if f, err := Compile(Spec{Log: l.Log, StrictHosts: true}); err == nil {
			known = append(known, f)
		}
	}
	var said []string
	var first *Format
	rest := slices.Clone(lines)
	for len(said) < most && len(rest) > 0 {
		tried := known
		if at := slices.IndexFunc(rest, anyMethod.Match); at >= 0 {
			if f, err := guessFormat(rest[at]).compile(); err == nil {
				tried = append(slices.Clone(known), f)
			}
		}
		var best Trial
		var by *Format
		for _, f := range tried {
			if t := f.try(rest); t.Valid > best.Valid || t.Valid == best.Valid && t.Fields > best.Fields {
				best, by = t, f
			}
		}
		if by == nil {
			break
		}
		first = cmp.Or(first, by)
		said = append(said, fmt.Sprintf("--format '%s' reads %d", by.name, best.Valid))
		rest = slices.DeleteFunc(rest, func(line []byte) bool { return by.try([][]byte{line}).Valid > 0 })
	}
	if len(said) == 0 {
		return ""
	}
	if len(rest) > 0 {
		said = append(said, fmt.Sprintf("none of these reads %d, the first is %s (for the first format, %s)",
			len(rest), quoted(rest[0]), first.try(rest[:1]).Failed))
	}
	return "Its lines are of several kinds: " + strings.Join(said, "; ") +
		". Take one kind out, e.g. with grep, or give its --format and --allow-rejects"
}

// firstRequest returns the first line that has a method, or else the first.
func firstRequest(lines [][]byte) []byte {
	return lines[max(0, slices.IndexFunc(lines, anyMethod.Match))]
}

// guessFrom makes a format from what the first request looks like; f is nil if it does not read most of the lines.
func guessFrom(lines [][]byte) (g *guess, f *Format) {
	g = guessFormat(firstRequest(lines))
	f, err := g.compile()
	if err != nil {
		return g, nil
	}
	if t := f.try(lines); 2*t.Valid <= t.Lines {
		return g, nil
	}
	return g, f
}

// guess is a format made from what the fields of one line look like.
type guess struct {
	line string
	log  string
	rows [][2]string // specifier, text
	have map[string]bool
	// isNginx is set where the keys of JSON are the names of nginx's variables: then the format is certain.
	isNginx bool
}

func (g *guess) compile() (*Format, error) { return Compile(Spec{Log: g.log, StrictHosts: true}) }

// lacks says what no field looks like.
func (g *guess) lacks() string {
	for _, need := range []struct{ specifier, what string }{
		{"%x", "a known time, which %x and --datetime-format can name"}, {"%h", "the client's address"}, {"%U", "a request"},
	} {
		if !g.have[need.specifier] {
			return "No field of it looks like " + need.what
		}
	}
	return "Its fields are not where its other lines have them"
}

func guessFormat(line []byte) *guess {
	g := &guess{line: string(line), have: map[string]bool{}}
	if line[0] == '{' {
		g.readJSON(line)
		return g
	}
	var pieces []string
	last, before, previous := 0, "", ""
	for _, token := range tokensOf(line) {
		if before == "~h{, }" && isVisitor(token) { // the rest of the list
			continue
		}
		piece, specifier := g.piece(token, before, previous)
		pieces, before, previous = append(pieces, piece), specifier, token
		if specifier != "%^" {
			last = len(pieces)
		}
		g.rows = append(g.rows, [2]string{specifier, token})
	}
	g.log = strings.Join(pieces[:last], " ")
	if last < len(pieces) && strings.HasPrefix(pieces[last-min(1, last)], "%") {
		g.log += " %^" // ends the last field
	}
	return g
}

// piece returns the part of the format that reads a token, and its specifier. Before it stands a text that another
// specifier reads.
func (g *guess) piece(token, before, previous string) (piece, specifier string) {
	text := strings.Trim(token, `"[]`)
	quoted := strings.HasPrefix(token, `"`)
	switch {
	case !g.have["%x"] && len(wordsBeforeTime([]byte("- "+token))) == 1:
		g.have["%x"] = true
		rest := ""
		if at := len("10/Oct/2025:13:55:36"); len(text) > at {
			rest = text[at:at+1] + "%^"
		}
		return pieceOf(token, "%d:%t"+rest), "%d:%t"
	case !g.have["%x"] && len(text) >= 10 && readAny([]byte(text), new(timestamp)):
		specifier = "%x"
	case !g.have["%r"] && methodLen([]byte(text)) > 0 && strings.Contains(text, " HTTP/"):
		specifier = "%r"
		g.have["%m"], g.have["%U"] = true, true
	case !g.have["%m"] && methodLen([]byte(text)) == len(text):
		specifier = "%m"
	case !g.have["%U"] && g.have["%m"] && strings.HasPrefix(text, "/"):
		specifier = "%U"
	case !g.have["%v"] && (previous == "http" || previous == "https"):
		specifier = "%v"
	case !g.have["%h"] && isVisitor(token):
		specifier = "%h"
		if strings.Contains(text, ",") {
			specifier = "~h{, }"
		}
	case !g.have["%h"] && isVisitor(string(hostOf(text))):
		g.have["%h"] = true
		return pieceOf(token, "%h:%^"), "%h"
	case !g.have["%v"] && !g.have["%r"] && hostWord.MatchString(token):
		specifier = "%v"
	case !g.have["%s"] && len(token) == 3 && token >= "100" && token <= "599" && isNumber(token):
		specifier = "%s"
	case before == "%s" && g.have["%U"] && !g.have["%b"] && (token == "-" || isNumber(token)):
		specifier = "%b"
	case quoted && !g.have["%u"] && (strings.Contains(token, "Mozilla/") || agentText.MatchString(token) || before == "%R"):
		specifier = "%u"
	case quoted && !g.have["%R"] && (before == "%b" || strings.HasPrefix(text, "http")):
		specifier = "%R"
	case strings.HasPrefix(token, "["):
		return g.named(text)
	default:
		return pieceOf(token, "%^"), "%^"
	}
	g.have[specifier] = true
	if specifier == "~h{, }" {
		g.have["%h"] = true
	}
	return pieceOf(token, specifier), specifier
}

// named reads brackets with the name of a field before its text: [client: 192.0.2.7], [Length 12].
func (g *guess) named(text string) (piece, specifier string) {
	at := strings.IndexAny(text, ": ")
	if at <= 0 {
		return "[%^]", "%^"
	}
	between := text[at : at+1]
	if strings.HasPrefix(text[at:], ": ") {
		between = ": "
	}
	if specifier = g.matchName(text[:at], text[at+len(between):]); specifier == "" {
		return "[%^]", "%^"
	}
	g.have[specifier] = true
	return "[%^" + between + specifier + "]", specifier
}

// fieldNames are what servers call a field, in lower case and without marks; the best names of each come first.
var fieldNames = [...]struct{ specifier, names string }{
	{"%x", "msec timeiso8601 time timestamp ts starttime timelocal datetime date start"},
	{"%h", "clientip client remoteaddr remoteip clienthost ip downstreamremoteaddress sourceip clientaddress remote xforwardedfor"},
	{"%r", "request requestline"},
	{"%m", "method requestmethod httpmethod verb"},
	{"%U", "requesturi path uri url requestpath xenvoyoriginpath target urloriginal urlpath httpurl"},
	{"%H", "serverprotocol protocol requestprotocol httpprotocol proto httpversion"},
	{"%v", "host authority requesthost httphost vhost origin servername urldomain domain"},
	{"%s", "status statuscode responsecode response httpstatus responsestatus responsestatuscode httpstatuscode code"},
	{"%b", "bodybytessent bytes bytessent size length responsesize bodybytes"},
	{"%R", "referer referrer httpreferer httpreferrer requestreferrer requestreferer"},
	{"%u", "useragent httpuseragent agent requestuseragent useragentoriginal"},
	{"%T", "requesttime"},
}

// matchName returns the specifier of a field with this name, "" for none that is known, or is known already.
func (g *guess) matchName(name, text string) string {
	for _, field := range fieldNames {
		if slices.Contains(strings.Fields(field.names), plainName(name)) && !g.have[field.specifier] && fits(field.specifier, text) {
			return field.specifier
		}
	}
	return ""
}

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ":", "", "@", "", "$", "", ".", "").Replace(name))
}

// fits reports whether a text may be what a specifier reads.
func fits(specifier, text string) bool {
	switch specifier {
	case "%x":
		return len(text) >= 10 && readAny([]byte(text), new(timestamp))
	case "%h":
		return isVisitor(text) || isVisitor(string(hostOf(text)))
	case "%r":
		return methodLen([]byte(text)) > 0 && strings.Contains(text, string(protocolMark))
	case "%m":
		return text != "" && methodLen([]byte(text)) == len(text)
	case "%H":
		return protocolLen([]byte(text)) > 0
	case "%s":
		return len(text) == 3 && text >= "100" && text <= "599" && isNumber(text)
	case "%b":
		return text == "-" || isNumber(text)
	}
	return text != ""
}

// readJSON makes the format of a line of JSON.
func (g *guess) readJSON(line []byte) {
	var values any
	if json.Unmarshal(line, &values) != nil {
		return
	}
	type value struct {
		path []any
		text string
	}
	found := map[string]value{} // by name, and by the object's name and its own
	keep := func(name string, path []any, text string) {
		old, twice := found[name]
		if !twice || len(path) < len(old.path) || len(path) == len(old.path) && fmt.Sprint(path) < fmt.Sprint(old.path) {
			found[name] = value{path, text}
		}
	}
	eachText(values, nil, func(path []any, text string) {
		name, ok := path[len(path)-1].(string)
		if !ok {
			return
		}
		keep(plainName(name), path, text)
		if len(path) > 1 {
			if above, ok := path[len(path)-2].(string); ok {
				keep(plainName(above+name), path, text)
			}
		}
	})
	var format any = map[string]any{}
	names := map[string]string{}
	for _, field := range fieldNames {
		if g.have["%r"] && slices.Contains([]string{"%m", "%U", "%H"}, field.specifier) {
			continue
		}
		for _, name := range strings.Fields(field.names) {
			v, ok := found[name]
			if !ok || !fits(field.specifier, v.text) {
				continue
			}
			specifier := field.specifier
			if specifier == "%h" && !isVisitor(v.text) {
				specifier = "%h:%^"
			}
			if specifier == "%h" && strings.Contains(v.text, ",") {
				specifier = "~h{, }"
			}
			if made := put(format, v.path, specifier); made != nil {
				format, g.have[field.specifier], names[field.specifier] = made, true, name
				g.rows = append(g.rows, [2]string{specifier, v.text})
			}
			break
		}
	}
	g.have["%U"] = g.have["%U"] || g.have["%r"]
	g.isNginx = names["%h"] == "remoteaddr" && (names["%r"] == "request" || names["%U"] == "requesturi")
	g.log = jsonText(format)
}

// columns shows a line under the specifiers that it was taken apart by.
func (g *guess) columns() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	safe := redact.Line(g.line)
	for _, row := range g.rows {
		fmt.Fprintf(table, "  %s\t%s\n", row[0], quoted([]byte(redactPart(safe, row[1]))))
	}
	_ = table.Flush()
	return strings.TrimRight(out.String(), "\n")
}

func isNumber(text string) bool {
	_, ok := parseUint([]byte(text))
	return ok
}

func hostOf(text string) []byte {
	host, _ := cutPort([]byte(text))
	return host
}
