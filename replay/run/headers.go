package run

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"plimsoll/replay/engine/wire"
	"plimsoll/replay/redact"
)

// headerName matches a name that may be shown.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,60}$`)

// headers reads --header and --header-file. Its errors say where a header stands and never what it says,
// except the name of a header on the command line.
func (c *Command) headers() (*wire.Headers, error) { return ReadHeaders(c.Header, c.HeaderFile) }

// ReadHeaders reads the headers of a command line and of a file. It refuses secrets on the command line.
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
		text, err := readSecretFile("--header-file", file)
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

// readSecretFile reads a file that a flag names, and that others cannot read.
func readSecretFile(flag, path string) (string, error) {
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
