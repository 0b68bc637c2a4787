package main

import "errors"

// Exit codes of every command: it ran and the answer is yes, it ran and the answer is no, it was asked wrongly.
const (
	exitYes   = 0
	exitNo    = 1
	exitUsage = 2
)

// usageError is a mistake in what was asked: a flag, a format, a file. Its text is one sentence with the remedy.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// answerNo ends a command that ran as asked, and whose answer is no.
type answerNo struct{ err error }

func (e answerNo) Error() string { return e.err.Error() }
func (e answerNo) Unwrap() error { return e.err }

// exitCode maps an error of a command to the exit code of the process.
func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitYes
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitNo
	}
}
