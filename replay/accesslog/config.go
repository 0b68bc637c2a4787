package accesslog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ReadConfig reads a goaccess.conf: log-format, date-format, time-format, datetime-format and tz. All other keys are
// ignored, but a line with a key and nothing after it is a mistake.
func ReadConfig(r io.Reader, name string) (Spec, error) {
	var spec Spec
	into := map[string]*string{
		"log-format": &spec.Log, "date-format": &spec.Date, "time-format": &spec.Time,
		"datetime-format": &spec.DateTime, "tz": &spec.TZ,
	}
	var errs []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value := line, ""
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			key, value = line[:i], strings.TrimSpace(line[i:])
		}
		at, ok := into[strings.ReplaceAll(key, "_", "-")]
		if !ok {
			continue
		}
		if value == "" {
			errs = append(errs, fmt.Errorf("%s, line %d: %s has no value: write it after a space", name, n, key))
			continue
		}
		*at = value
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("reading %s: %w", name, err))
	}
	return spec, errors.Join(errs...)
}

// ReadConfigFile reads the goaccess.conf at a path.
func ReadConfigFile(path string) (Spec, error) {
	file, err := os.Open(path)
	if err != nil {
		return Spec{}, fmt.Errorf("reading goaccess's configuration: %w", err)
	}
	defer file.Close()
	return ReadConfig(file, path)
}

// Or returns s with its empty fields taken from other, as the command line takes precedence over the configuration
// file.
func (s Spec) Or(other Spec) Spec {
	for _, at := range [...]struct {
		to   *string
		from string
	}{
		{&s.Log, other.Log}, {&s.Date, other.Date}, {&s.Time, other.Time}, {&s.DateTime, other.DateTime}, {&s.TZ, other.TZ},
	} {
		if *at.to == "" {
			*at.to = at.from
		}
	}
	s.StrictHosts = s.StrictHosts || other.StrictHosts
	return s
}
