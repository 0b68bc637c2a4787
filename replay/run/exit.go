package run

import "errors"

// Exit codes of every command.
const (
	ExitYes   = 0 // it ran, and the answer is yes
	ExitNo    = 1 // it ran, and the answer is no
	ExitUsage = 2 // a mistake in the command line or in a file
	// ExitUnknown is of a command that asks whether two things are the same: it ran without finding out.
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
