package traffic

import (
	"errors"
	"fmt"

	"plimsoll/replay/accesslog"
)

// More than this part of the lines, and more than this many, may not be rejected without --allow-rejects. A single odd
// line says nothing of the format, however short the log is.
const (
	maxRejectedShare = 0.10
	maxRejectedLines = 1
)

// CheckDuplicates refuses logs of which one begins with all that is in another. The names are those of its files.
func CheckDuplicates(logs *accesslog.Source, names []string) error {
	a, b, found := logs.Duplicates()
	if !found {
		return nil
	}
	return fmt.Errorf("%s and %s hold the same requests, which would count twice: give one of them, or --allow-duplicates",
		names[a], names[b])
}

// CheckRejects refuses a log of which too much was rejected, unless that is allowed; it shows the first rejects.
func CheckRejects(totals accesslog.Totals, format string, first []accesslog.Reject, allowRejects bool) error {
	if totals.Valid == 0 && totals.Failed == 0 {
		return fmt.Errorf("the log has no requests: it holds only %d comments and empty lines", totals.Ignored)
	}
	if allowRejects && totals.Valid > 0 {
		return nil
	}
	if totals.Valid > 0 && (totals.RejectedShare() <= maxRejectedShare || totals.Failed <= maxRejectedLines) {
		return nil
	}
	text := fmt.Sprintf("lines do not match the format %q (%d of %d): give the right one with --format (FORMAT=), or --allow-rejects",
		format, totals.Failed, totals.Failed+totals.Valid)
	for _, r := range first[:min(3, len(first))] {
		text += fmt.Sprintf("\n  line %d: %s", r.Line, r.Mismatch.Error())
	}
	return errors.New(text)
}
