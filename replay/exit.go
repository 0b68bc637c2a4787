package main

import (
	"errors"

	"plimsoll/replay/run"
)

// Exit codes of every command: it ran and the answer is yes, it ran and the answer is no, it was asked wrongly.
const (
	exitYes   = 0
	exitNo    = 1
	exitUsage = 2
)

// exitCode maps an error of a command to the exit code of the process.
func exitCode(err error) int {
	var usage run.UsageError
	switch {
	case err == nil:
		return exitYes
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitNo
	}
}
