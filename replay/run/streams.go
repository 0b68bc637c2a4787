package run

import (
	"encoding/json"
	"io"
	"os"
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

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
