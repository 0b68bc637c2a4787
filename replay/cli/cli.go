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
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Bar shows on a terminal how much of something is done, unless that is not wanted. add is called by one goroutine at a
// time.
func Bar(s Streams, quiet bool, total int64, what string, more ...progressbar.Option) (add func(n int), end func()) {
	if quiet || !IsTerminal(s.Err) {
		return func(int) {}, func() {}
	}
	bar := progressbar.NewOptions64(max(total, 1), append(more, progressbar.OptionSetWriter(s.Err), progressbar.OptionSetWidth(20),
		progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(200*time.Millisecond))...)
	return func(n int) { _ = bar.Add(n) }, func() { _ = bar.Finish() }
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

// UsageError is a mistake in what the user wrote: a flag, a format, a file. Its text is one sentence with the remedy.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

func (e UsageError) Unwrap() error { return e.Err }

// AnswerNo ends a command that ran as it should, and whose answer is no.
type AnswerNo struct{ Err error }

func (e AnswerNo) Error() string { return e.Err.Error() }

func (e AnswerNo) Unwrap() error { return e.Err }

// Unknown ends a command that ran, and could not find its answer.
type Unknown struct{ Err error }

func (e Unknown) Error() string { return e.Err.Error() }

func (e Unknown) Unwrap() error { return e.Err }

// ExitCode returns the exit code of a process whose command ended with this error.
func ExitCode(err error) int {
	var usage UsageError
	var unknown Unknown
	switch {
	case err == nil:
		return ExitYes
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &unknown):
		return ExitUnknown
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

// Warn prints a warning.
func Warn(w io.Writer, what any) {
	fmt.Fprintf(w, "replay: warning: %s\n", Printable(fmt.Sprint(what)))
}
