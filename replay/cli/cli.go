// Package cli is what the commands of bin/replay share: streams, exit codes, interrupts, printable text, and flags.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
)

// Version is the release, as in CHANGELOG.md.
const Version = "0.1.0"

// Streams are the process's standard streams, passed to every command so that tests can watch them.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Name     string // by which the program was called: replay or plimsoll
}

// Say prints a line on standard error.
func (s Streams) Say(text string) { fmt.Fprintf(s.Err, "%s: %s\n", s.Name, Printable(text)) }

// Warn prints a warning.
func (s Streams) Warn(what any) { s.Say("warning: " + fmt.Sprint(what)) }

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Progress shows how much of something is done: as a bar on a terminal, elsewhere as a line from time to time. A nil
// Progress shows nothing. Not safe for concurrent use.
type Progress struct {
	bar     *progressbar.ProgressBar
	say     func(line string)
	percent func(done int64) string // the default of what a line says
	next    time.Time               // when the next line is due
}

// linesApart is how far apart the lines of a Progress are.
const linesApart = 10 * time.Second

// NewProgress returns a Progress on standard error; nil where none is to be shown.
func NewProgress(s Streams, shown bool, total int64, what string, more ...progressbar.Option) *Progress {
	switch {
	case !shown:
		return nil
	case !IsTerminal(s.Err):
		percent := func(done int64) string {
			return fmt.Sprintf("%s: %.0f %%", what, 100*float64(done)/float64(max(total, 1)))
		}
		return &Progress{say: s.Say, percent: percent, next: time.Now().Add(linesApart)}
	}
	return &Progress{bar: progressbar.NewOptions64(max(total, 1), append(more, progressbar.OptionSetWriter(s.Err), progressbar.OptionSetWidth(20),
		progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))...)}
}

// Interval is how often there is something to show.
func (p *Progress) Interval() time.Duration {
	if p.bar != nil {
		return time.Second
	}
	return linesApart
}

// Show moves the bar, or prints the line where that is due: if it is nil, how many percent are done.
func (p *Progress) Show(done int64, line func() string) {
	switch now := time.Now(); {
	case p == nil:
	case p.bar != nil:
		_ = p.bar.Set64(done)
	case !now.Before(p.next):
		for !now.Before(p.next) {
			p.next = p.next.Add(linesApart)
		}
		if line == nil {
			line = func() string { return p.percent(done) }
		}
		p.say(line())
	}
}

// Describe changes the text beside the bar.
func (p *Progress) Describe(text string) {
	if p != nil && p.bar != nil {
		p.bar.Describe(text)
	}
}

// End removes the bar.
func (p *Progress) End() {
	if p != nil && p.bar != nil {
		_ = p.bar.Finish()
	}
}

// ShowBytes returns a function that shows how many bytes of a total are done, and one that ends that.
func ShowBytes(s Streams, shown bool, what string) (show func(done, total int64), end func()) {
	var p *Progress
	return func(done, total int64) {
		if p == nil && total > 0 {
			p = NewProgress(s, shown, total, what, progressbar.OptionShowBytes(true))
		}
		p.Show(done, nil)
	}, func() { p.End() }
}

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Exit codes of every command.
const (
	ExitYes   = 0 // it ran, and the answer is yes
	ExitNo    = 1 // it ran, and the answer is no
	ExitUsage = 2 // a mistake in the command line or in a file
	// ExitUnknown is of a command that ran, and could not find its answer: `replay same`, or a limit of `replay run`.
	ExitUnknown = 3
)

// exitError ends a command with an exit code of its own.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// Usage makes an error a mistake in what the user wrote: a flag, a format, a file. Its text is one sentence with the
// remedy.
func Usage(err error) error { return exitError{err, ExitUsage} }

// Unknown makes an error one of a command that ran, and could not find its answer.
func Unknown(err error) error { return exitError{err, ExitUnknown} }

// ExitCode returns the exit code of a process whose command ended with this error.
func ExitCode(err error) int {
	var own exitError
	switch {
	case err == nil:
		return ExitYes
	case errors.As(err, &own):
		return own.code
	}
	return ExitNo
}

// ErrInterrupted ends a run that was told to stop by a signal, or by k6.
var ErrInterrupted = errors.New("interrupted")

const (
	Grace  = 500 * time.Millisecond // what is in flight at an interrupt may take to finish
	moment = 200 * time.Millisecond // whoever reads or writes at the other end of a pipe may take after one
)

// OnInterrupts returns two contexts: the first ends at the first interrupt (finish what is in flight), the second at
// the second, or when what is in flight has had its time (leave at once). From the third on, a signal ends the process
// as it ends any other. A hang-up that was ignored when the process began stays so: that is what nohup asks for.
func OnInterrupts() (stop, abort context.Context, release func()) {
	stop, cancelStop := context.WithCancelCause(context.Background())
	abort, cancelAbort := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		var late <-chan time.Time
		for came := 0; came < 2; {
			select {
			case <-signals:
				came++
			case <-late:
				cancelAbort()
				continue
			case <-done:
				return
			}
			if came == 1 {
				cancelStop(ErrInterrupted)
				late = time.After(Grace)
			}
		}
		cancelAbort()
		signal.Stop(signals)
	}()
	return stop, abort, func() {
		signal.Stop(signals)
		close(done)
		cancelStop(nil)
		cancelAbort()
	}
}

// InTime does what may wait for another program: for one that writes the log, or for one that reads the summary. Once
// stop has ended, it waits for no longer than a moment and reports false: what is done then is not done.
func InTime(stop context.Context, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return true
	case <-stop.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(moment):
		return false
	}
}

// Printable returns a text that cannot harm a terminal: control, format and bidirectional characters are spelled out
// (\x1b, \u202e), as plimsoll/common/hostile.py does it, except line ends. So is what is not UTF-8.
func Printable(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case r == '\n' || unicode.IsGraphic(r):
			out.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
		text = text[n:]
	}
	return out.String()
}
