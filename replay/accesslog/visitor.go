package accesslog

// Fields in which a log has the visitor's address, where its format reads a proxy's.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/replay/accesslog/formats"
)

// VisitorField is a format that takes the client from another field of a log than the one in use does.
type VisitorField struct {
	Format    *Format
	Addresses int // that it finds in the first lines
	Clients   int // that the format in use finds
	Missing   int // requests without such an address, which are then refused
	Lines     int // that were looked at
}

// Bounds of the search for the visitor's address.
const (
	visitorSamples = 20  // lines whose fields are tried
	visitorTimes   = 2   // so many addresses for each client make a field the visitor's
	visitorMissing = 0.1 // part of the requests that may lack one
	mostTokens     = 40  // of a line
	deepestKey     = 8   // of a line of JSON
)

// VisitorField looks for a field of the first lines that has more addresses than the client has, as X-Forwarded-For does
// behind a proxy; ok is false if no field has.
func (s *Source) VisitorField(f *Format) (found VisitorField, ok bool) {
	lines, err := s.Head(headLines)
	if err != nil || strings.Contains(f.log, "~h") || !strings.Contains(f.log, "%h") {
		return found, false
	}
	requests, clients := f.parseClients(lines)
	names := 0
	for client := range clients {
		if !isAddress([]byte(client)) {
			names++
		}
	}
	if 2*names > len(clients) {
		return found, false // another format reads this log
	}
	tried := map[string]bool{}
	for i := 0; i < len(requests); i += max(1, len(requests)/visitorSamples) {
		if requests[i] == nil {
			continue
		}
		for _, log := range f.candidates(lines[i]) {
			if tried[log] {
				continue
			}
			tried[log] = true
			spec := f.spec
			spec.Log = log
			other, err := Compile(spec)
			if err != nil {
				continue
			}
			if got := other.against(lines, requests, len(clients)); got.Addresses > found.Addresses {
				found, ok = got, true
			}
		}
		if ok {
			return found, true
		}
	}
	return found, false
}

// parseClients reads lines: their requests, nil for a line that is not one, and the clients that there are.
func (f *Format) parseClients(lines [][]byte) (requests []*Request, clients map[string]bool) {
	requests, clients = make([]*Request, len(lines)), map[string]bool{}
	for i, line := range lines {
		var r Request
		if Ignored(line) || f.Parse(line, &r) != nil {
			continue
		}
		clients[string(r.Host)] = true
		requests[i] = &Request{TimeNS: r.TimeNS, Status: r.Status, Target: bytes.Clone(r.Target)}
	}
	return requests, clients
}

// against compares what a format reads with what another one read: all must be the same but the client. It finds nothing if
// that is not so, or if the format reads no more addresses than there were clients.
func (f *Format) against(lines [][]byte, requests []*Request, clients int) (found VisitorField) {
	seen := map[string]bool{}
	whole := VisitorField{Format: f, Clients: clients, Lines: len(lines)}
	var r Request
	for i, line := range lines {
		switch want := requests[i]; {
		case want == nil:
		case f.Parse(line, &r) != nil:
			whole.Missing++
		case r.TimeNS != want.TimeNS || r.Status != want.Status || !bytes.Equal(r.Target, want.Target):
			return found
		default:
			seen[string(r.Host)] = true
		}
	}
	whole.Addresses = len(seen)
	if whole.Addresses < visitorTimes*clients || whole.Addresses < 3 || float64(whole.Missing) > visitorMissing*float64(len(lines)) {
		return found
	}
	return whole
}

// candidates returns format strings that take the client from another field of a line.
func (f *Format) candidates(line []byte) []string {
	if f.keys != nil {
		return f.candidatesOfJSON(line)
	}
	const visitor = "~h{, }"
	masked := strings.Replace(f.log, "%h", "%^", 1)
	var all []string
	for at := strings.Index(masked, "%^"); at >= 0; { // a field that is skipped
		all = append(all, masked[:at]+visitor+masked[at+2:])
		next := strings.Index(masked[at+2:], "%^")
		if next < 0 {
			break
		}
		at += 2 + next
	}
	tokens := tokensOf(line)
	if rest, ok := strings.CutPrefix(f.log, "%h %^["); ok { // one of those before the time
		begin := ""
		for i, token := range tokens {
			if strings.HasPrefix(token, "[") {
				break
			}
			if i > 0 && isVisitor(token) {
				all = append(all, begin+visitor+" %^["+rest, begin+visitor+" ["+rest)
			}
			begin += pieceOf(token, "%^") + " "
		}
	}
	for i, token := range tokens { // one after those that are read
		if !isVisitor(token) {
			continue
		}
		end := " " + pieceOf(token, visitor)
		for j := i; j > 0; j-- {
			all = append(all, masked+end)
			end = " " + pieceOf(tokens[j-1], "%^") + end
		}
	}
	return all
}

// tokensOf splits a line at its spaces, except those in quotes and brackets.
func tokensOf(line []byte) (tokens []string) {
	begin, until := 0, byte(0)
	for i, c := range line {
		switch {
		case until != 0:
			if c == until && (c != '"' || line[i-1] != '\\') {
				until = 0
			}
		case c == '"':
			until = '"'
		case c == '[' && i == begin:
			until = ']'
		case c == ' ':
			tokens = append(tokens, string(line[begin:i]))
			begin = i + 1
		}
		if len(tokens) == mostTokens {
			return tokens
		}
	}
	return append(tokens, string(bytes.TrimSpace(line[begin:])))
}

// pieceOf returns the format of a token whose text is read as a specifier says.
func pieceOf(token, specifier string) string {
	name := ""
	if at := strings.IndexByte(token, '='); at > 0 && !strings.ContainsAny(token[:at], `"[:/?&%`) {
		name, token = token[:at+1], token[at+1:]
	}
	switch {
	case strings.HasPrefix(token, `"`):
		return name + `"` + specifier + `"`
	case strings.HasPrefix(token, "["):
		return name + "[" + specifier + "]"
	}
	return name + specifier
}

// isVisitor reports whether a token is an IP address, or a list that begins with one.
func isVisitor(token string) bool {
	if at := strings.IndexByte(token, '='); at > 0 {
		token = token[at+1:]
	}
	first, _, _ := strings.Cut(strings.Trim(token, `"[]`), ",")
	return isAddress([]byte(strings.TrimSpace(first)))
}

// candidatesOfJSON returns the format with the client at each key whose value is an address.
func (f *Format) candidatesOfJSON(line []byte) (all []string) {
	var values any
	if json.Unmarshal(line, &values) != nil {
		return nil
	}
	eachText(values, nil, func(path []any, text string) {
		var format any
		if !isVisitor(text) || json.Unmarshal([]byte(f.log), &format) != nil {
			return
		}
		object, ok := put(withoutClient(format), path, "~h{, }").(map[string]any)
		if !ok {
			return
		}
		all = append(all, jsonText(object))
	})
	return all
}

// jsonText returns a format as JSON.
func jsonText(format any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(format) // maps, lists and texts always are JSON
	return strings.TrimSpace(out.String())
}

// eachText calls use for every text and number in a JSON value, with the names and indices that lead there; of a list for the first
// element only.
func eachText(value any, path []any, use func(path []any, text string)) {
	switch v := value.(type) {
	case string:
		use(path, v)
	case float64:
		use(path, strconv.FormatFloat(v, 'f', -1, 64))
	case []any:
		if len(v) > 0 && len(path) < deepestKey {
			eachText(v[0], append(slices.Clone(path), 0), use)
		}
	case map[string]any:
		for name, one := range v {
			if len(path) < deepestKey {
				eachText(one, append(slices.Clone(path), name), use)
			}
		}
	}
}

// withoutClient takes the client out of a JSON format.
func withoutClient(value any) any {
	if object, ok := value.(map[string]any); ok {
		for name, one := range object {
			if one == "%h" {
				delete(object, name)
			} else {
				object[name] = withoutClient(one)
			}
		}
	}
	return value
}

// put sets the value at a path, and makes what is not there; nil where something else is.
func put(value any, path []any, text string) any {
	if len(path) == 0 {
		return text
	}
	name, isName := path[0].(string)
	if !isName {
		return []any{put(nil, path[1:], text)}
	}
	if value == nil {
		value = map[string]any{}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	object[name] = put(object[name], path[1:], text)
	return object
}

// Warning says that another field looks like the visitor's address, with the flags that take it.
func (v VisitorField) Warning() string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	format := quote(v.Format.log)
	flags := "--format " + format
	make := " (make: FORMAT=" + format + ")"
	for _, one := range []struct{ flag, value, usual string }{
		{"--date-format", v.Format.spec.Date, formats.DateApache}, {"--time-format", v.Format.spec.Time, formats.Time24},
		{"--datetime-format", v.Format.spec.DateTime, ""},
	} {
		if one.value != "" && one.value != one.usual {
			flags, make = flags+" "+one.flag+" "+quote(one.value), ""
		}
	}
	text := fmt.Sprintf("another field of this log looks like the visitor's address: it has %d in the first lines, where the client has %d. Take it with %s%s",
		v.Addresses, v.Clients, flags, make)
	if v.Missing > 0 {
		text += fmt.Sprintf("; %d of %d lines have none and are then rejected", v.Missing, v.Lines)
	}
	return text
}
