package k6

// A script's options become flags of `replay run`.

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/grafana/sobek"

	"plimsoll/replay/cli"
	"plimsoll/replay/run"
)

// options are what a script gives to plimsoll.open(): the flags of `bin/replay run`, written in camel case, so that
// they mean the same, and some of k6's own.
type options struct {
	logs    []string
	flags   []string
	startAt string
	key     string // the same for the same options
}

// Flags of `bin/replay run` that a script cannot set: k6 has a progress bar and a summary of its own, and thresholds that
// end a test.
var reservedFlags = []string{"quiet", "progress", "json", "root", "abortOnFail", "abortAfter", "metrics", "metricsRemote"}

// readOptions makes a JavaScript object into a command line. Values are checked later, by the command itself.
func readOptions(value sobek.Value) (*options, error) {
	if value == nil || sobek.IsUndefined(value) || sobek.IsNull(value) {
		return nil, errors.New("plimsoll.open() needs options: plimsoll.open({ logs: 'access.log', target: 'http://10.0.0.5' })")
	}
	given, ok := value.Export().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("plimsoll.open() needs an object of options, not %q", value)
	}
	o := &options{}
	key, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("plimsoll.open(): %w", err)
	}
	o.key = string(key)
	var wrong []error
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		wrong = append(wrong, o.set(name, given[name]))
	}
	if len(o.logs) == 0 {
		wrong = append(wrong, errors.New("logs: missing: give one, such as logs: 'access.log', or a list"))
	}
	if given["target"] == nil {
		wrong = append(wrong, errors.New("target: missing: give the server, such as target: 'http://10.0.0.5'"))
	}
	return o, errors.Join(wrong...)
}

func (o *options) set(name string, value any) error {
	switch {
	case slices.Contains(reservedFlags, name):
		return fmt.Errorf("%s: is only for bin/replay: leave it out", name)
	case name == "logs":
		for _, log := range list(value) {
			o.logs = append(o.logs, fmt.Sprint(log))
		}
		return nil
	case name == "startAt":
		o.startAt = fmt.Sprint(value)
		return nil
	case name == "header":
		return o.headers(value)
	}
	flag := "--" + kebab(name)
	for _, one := range list(value) {
		switch v := one.(type) {
		case nil:
		case bool:
			if v {
				o.flags = append(o.flags, flag)
			}
		case string, int64, float64:
			o.flags = append(o.flags, fmt.Sprintf("%s=%v", flag, v))
		default:
			return fmt.Errorf("%s: give a string, a number, true or a list of these", name)
		}
	}
	return nil
}

// headers takes { Name: 'value' }. Secrets must come from a file, as everywhere.
func (o *options) headers(value any) error {
	given, ok := value.(map[string]any)
	if !ok {
		return errors.New("header: give an object: header: { 'X-Test': 'yes' }")
	}
	for name, text := range given {
		o.flags = append(o.flags, fmt.Sprintf("--header=%s: %v", name, text))
	}
	slices.Sort(o.flags)
	return nil
}

// command returns the checked command line that the options stand for. Relative paths start at the script's folder.
func (o *options) command(absolute func(string) string) (*run.Settings, *run.Setup, error) {
	c := &run.Settings{}
	parser, err := kong.New(c, kong.Name("plimsoll"), kong.NoDefaultHelp(), kong.Exit(func(int) {}))
	if err != nil {
		return nil, nil, err
	}
	args := slices.Clone(o.flags)
	for _, log := range o.logs {
		if log == "-" {
			return nil, nil, errors.New("logs: k6 uses standard input itself: give a file")
		}
		args = append(args, absolute(log))
	}
	if _, err := parser.Parse(append(args, "--quiet")); err != nil {
		return nil, nil, fmt.Errorf("plimsoll.open(): %s; the options are the flags of bin/replay run in camel case: docs/k6.md",
			inCamelCase(err))
	}
	setup, err := c.Check()
	if err != nil {
		return nil, nil, fmt.Errorf("plimsoll.open():\n%s", inCamelCase(err))
	}
	setup.StartAt, err = startInstant(o.startAt, time.Now())
	return c, setup, err
}

// inCamelCase returns the text of an error with flags named as in scripts, connectTo for --connect-to, and nothing in it
// that could harm a terminal.
func inCamelCase(err error) string {
	var out strings.Builder
	for i, word := range strings.Split(err.Error(), "--") {
		if i == 0 {
			out.WriteString(word)
			continue
		}
		end := strings.IndexFunc(word, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) })
		if end < 0 {
			end = len(word)
		}
		out.WriteString(camel(word[:end]) + word[end:])
	}
	return cli.Printable(out.String())
}

// readyWithin is how long instances may take to be resumed one after the other and still agree on the next whole
// minute.
const readyWithin = 10 * time.Second

// startInstant returns when the clock of the run starts: "" when all is ready, an instant, or "minute": the next whole
// minute that is at least ten seconds away, on which instances that are resumed together agree. That one is known only
// when the run begins.
func startInstant(text string, now time.Time) (time.Time, error) {
	switch text {
	case "", "minute":
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, fmt.Errorf("startAt %q: give an instant as 2026-11-22T10:00:00Z, or 'minute'", text)
	}
	if at.Before(now.Add(-time.Hour)) || at.After(now.Add(24*time.Hour)) {
		return at, fmt.Errorf("startAt %s: give an instant between one hour ago and one day ahead", text)
	}
	return at, nil
}

// nextMinute returns the instant that "minute" stands for.
func nextMinute(now time.Time) time.Time {
	return now.Add(readyWithin).Truncate(time.Minute).Add(time.Minute)
}

func list(value any) []any {
	if values, ok := value.([]any); ok {
		return values
	}
	return []any{value}
}

// kebab makes connectTo into connect-to.
func kebab(name string) string {
	var out strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			out.WriteByte('-')
			r = unicode.ToLower(r)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// camel makes connect-to into connectTo.
func camel(name string) string {
	words := strings.Split(name, "-")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}
