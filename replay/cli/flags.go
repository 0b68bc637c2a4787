package cli

// Flags that several commands have: what is shown, which logs and how they are read, periods, patterns, headers, names,
// sizes, folders.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/redact"
	"plimsoll/replay/traffic"
)

// ShowFlags are the flags for what a command shows beside its result.
type ShowFlags struct {
	Progress *bool `help:"Show progress on standard error: a bar in a terminal, elsewhere a line every ten seconds. Default: in a terminal." negatable:"" group:"Results"`
	Quiet    bool  `help:"Show no progress and no notes." group:"Results"`
}

// ShowsProgress reports whether progress is shown on standard error.
func (f ShowFlags) ShowsProgress(s Streams) bool {
	if f.Progress != nil {
		return *f.Progress
	}
	return !f.Quiet && IsTerminal(s.Err)
}

// Args returns the flags as they are passed on to another process.
func (f ShowFlags) Args() []string {
	var args []string
	if f.Progress != nil {
		args = append(args, fmt.Sprintf("--progress=%t", *f.Progress))
	}
	if f.Quiet {
		args = append(args, "--quiet")
	}
	return args
}

// LogFlags are the flags for reading logs, of every command that reads some.
type LogFlags struct {
	Format         string `help:"Preset (COMBINED, HAPROXY, …), goaccess log-format string, or guess: take the format that an error proposes. Default: detected." placeholder:"F" group:"Reading logs"`
	DateFormat     string `help:"strftime format of %d." placeholder:"D" group:"Reading logs"`
	TimeFormat     string `help:"strftime format of %t." placeholder:"T" group:"Reading logs"`
	DatetimeFormat string `help:"strftime format of %x." placeholder:"DT" group:"Reading logs"`
	TZ             string `name:"tz" help:"Time zone of times without an offset, such as Europe/Berlin. Default: UTC." placeholder:"ZONE" group:"Reading logs"`
	Config         string `help:"Read the formats from this goaccess.conf; flags take precedence." placeholder:"FILE" group:"Reading logs"`
	StrictHosts    bool   `help:"Reject lines whose client is not an IP address, as goaccess does by default." group:"Reading logs"`
	AllowRejects   bool   `help:"Continue when more than 10 % of the lines do not parse." group:"Reading logs"`

	AllowDuplicates bool `help:"Read the logs even if one begins with all of another, such as a log and its compressed copy." group:"Reading logs"`
}

// Spec returns what the flags and the configuration file say together.
func (f LogFlags) Spec() (accesslog.Spec, error) {
	spec := accesslog.Spec{
		Log: f.Format, Date: f.DateFormat, Time: f.TimeFormat, DateTime: f.DatetimeFormat, TZ: f.TZ, StrictHosts: f.StrictHosts,
	}
	if f.Config == "" {
		return spec, nil
	}
	conf, err := accesslog.ReadConfigFile(f.Config)
	if err != nil {
		return spec, Usage(err)
	}
	return spec.Or(conf), nil
}

// Args returns the flags as they are passed on to another process.
func (f LogFlags) Args() []string {
	var args []string
	for _, flag := range []struct{ name, value string }{
		{"--format", f.Format},
		{"--date-format", f.DateFormat},
		{"--time-format", f.TimeFormat},
		{"--datetime-format", f.DatetimeFormat},
		{"--tz", f.TZ},
		{"--config", f.Config},
	} {
		if flag.value != "" {
			args = append(args, flag.name+"="+flag.value)
		}
	}
	if f.StrictHosts {
		args = append(args, "--strict-hosts")
	}
	if f.AllowRejects {
		args = append(args, "--allow-rejects")
	}
	if f.AllowDuplicates {
		args = append(args, "--allow-duplicates")
	}
	return args
}

// OpenLogs finds the logs, detects their format and counts them. Pauses longer than pause are found, too; logTime is
// received, finished or auto; progress says whether that of counting is shown.
func (f LogFlags) OpenLogs(ctx context.Context, s Streams, paths []string, pause time.Duration, logTime string, progress bool) (*traffic.Logs, error) {
	spec, err := f.Spec()
	if err != nil {
		return nil, err
	}
	show, end := ShowBytes(s, progress, "Reading the log")
	var logs *traffic.Logs
	opened := InTime(ctx, func() {
		logs, err = traffic.Open(ctx, paths, s.In, traffic.Reading{Spec: spec, AllowDuplicates: f.AllowDuplicates, Pause: pause, Progress: show})
	})
	if opened {
		end()
	}
	switch {
	case !opened || err != nil && ctx.Err() != nil:
		return nil, ErrInterrupted
	case err != nil:
		return nil, Usage(err)
	}
	if err := logs.CheckRejects(f.AllowRejects); err != nil {
		logs.Close()
		return nil, Usage(err)
	}
	if logTime != "auto" {
		logs.Finished = logTime == "finished"
	}
	return logs, nil
}

// Problems are all that is wrong with a command line.
type Problems []error

// Note adds an error, unless it is nil.
func (p *Problems) Note(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

// NoteIf adds a sentence if it applies.
func (p *Problems) NoteIf(applies bool, format string, a ...any) {
	if applies {
		*p = append(*p, fmt.Errorf(format, a...))
	}
}

// NoteLines adds each line of an error, with what stands before it; nil has none.
func (p *Problems) NoteLines(before string, err error) {
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			*p = append(*p, errors.New(before+" "+line))
		}
	}
}

// Period reads --from and --to.
func (p *Problems) Period(fromText, toText string) (from, to time.Time) {
	from, err := parseInstant("--from", fromText)
	p.Note(err)
	to, err = parseInstant("--to", toText)
	p.Note(err)
	p.NoteIf(!from.IsZero() && !to.IsZero() && !from.Before(to), "--from is not before --to")
	return from, to
}

// Patterns reads the regular expressions of a flag.
func (p *Problems) Patterns(flag string, texts []string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, text := range texts {
		re, err := regexp.Compile(text)
		if err != nil {
			p.Note(fmt.Errorf("%s %q is not a regular expression: %w", flag, text, err))
			continue
		}
		out = append(out, re)
	}
	return out
}

// CheckNames checks the names that a run has in reports.
func (p *Problems) CheckNames(backend *string, repeat *int) {
	p.NoteIf(backend != nil && (*backend == "" || utf8.RuneCountInString(*backend) > 80), "--backend: give a name of 1 to 80 characters")
	if repeat != nil {
		p.NoteIf(*repeat < 1, "--repeat: %d is out of range, give at least 1", *repeat)
	}
}

// CheckOut finds out early that --out cannot hold a run directory.
func CheckOut(out string) error {
	if out == "" {
		return errors.New("--out is empty: give a folder")
	}
	for at := filepath.Clean(out); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			if _, err := os.Lstat(at); err == nil {
				return fmt.Errorf("--out %s: the link %s leads nowhere: choose another folder", out, at)
			}
			continue // it will be made
		}
		switch {
		case err != nil:
			return fmt.Errorf("--out %s: %w: choose another folder", out, err)
		case !info.IsDir():
			return fmt.Errorf("--out %s: %s is not a folder: choose another one", out, at)
		}
		if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("--out %s: this user cannot write to %s (%w): choose another folder", out, at, err)
		}
		return nil
	}
}

// instantLayouts are how --from and --to may be written; those without an offset are UTC.
var instantLayouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", "02/Jan/2006:15:04:05 -0700",
}

func parseInstant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, strings.Trim(text, "[]")); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is not a time: write it as '2026-11-20 10:00:00' (UTC), 2026-11-20T10:00:00+01:00, or as in the log",
		flag, text)
}

// ByteSize is a flag's number of bytes: 1048576, 512MiB, 10G.
type ByteSize int64

// Units of 1,024: K, KB and KiB are the same, as for most programs that copy files.
var byteUnits = map[string]int64{"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// UnmarshalText reads the flag's value.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.ToUpper(string(text))
	digits := strings.TrimRight(s, "KMGTIB")
	unit := strings.TrimSuffix(strings.TrimSuffix(s[len(digits):], "B"), "I")
	n, err := strconv.ParseFloat(digits, 64)
	scale, ok := byteUnits[unit]
	if err != nil || !ok || !(n >= 0 && n*float64(scale) < 1<<62) {
		return fmt.Errorf("%q is not a size: write a number of bytes, or one with K, M, G or T, such as 10G", text)
	}
	*b = ByteSize(n * float64(scale))
	return nil
}

// headerName matches a name that may be shown.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,60}$`)

// ReadHeaders reads --header and --header-file. It refuses secrets on the command line. Its errors say where a header
// stands and never what it says, except the name of a header on the command line.
func ReadHeaders(given []string, file string) (*wire.Headers, error) {
	var lines, where []string
	var wrong []error
	for i, line := range given {
		place := fmt.Sprintf("--header %d", i+1)
		if name, _, found := strings.Cut(line, ":"); found && headerName.MatchString(name) {
			place = "--header " + name
		}
		if redact.HoldsSecret(line) {
			wrong = append(wrong, fmt.Errorf("%s shows a secret in the list of processes: put the line into a file that only you can read, and give --header-file", place))
			continue
		}
		lines, where = append(lines, line), append(where, place)
	}
	if file != "" {
		text, err := ReadSecretFile("--header-file", file)
		wrong = append(wrong, err)
		for i, line := range strings.Split(text, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines, where = append(lines, line), append(where, fmt.Sprintf("--header-file %s, line %d:", file, i+1))
			}
		}
	}
	own, problems := wire.ParseHeaders(lines)
	for _, p := range problems {
		wrong = append(wrong, fmt.Errorf("%s %s", where[p.Line], p.Why))
	}
	return own, errors.Join(wrong...)
}

// ReadSecretFile reads a file that a flag names, and that others cannot read.
func ReadSecretFile(flag, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s %s can be read by others: restrict it with chmod 600", flag, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return string(text), nil
}
