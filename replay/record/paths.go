package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// DirName returns a name that sorts by time and names the log. Of the log's own name only harmless characters stay.
func DirName(now time.Time, scenario, log string) string {
	base := filepath.Base(log)
	if log == "-" {
		base = "stdin"
	}
	for _, suffix := range []string{".gz", ".bz2", ".xz", ".zst", ".log"} {
		base = strings.TrimSuffix(base, suffix)
	}
	base = strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, base)
	if len(base) > 60 {
		base = base[:60]
	}
	return now.UTC().Format("20060102T150405Z") + "-" + scenario + "-" + strings.Trim(base, ".-")
}

// FreePath returns OUT/name, with a number where that exists.
func FreePath(out, name string) (string, error) {
	for i := 1; i < 1000; i++ {
		path := filepath.Join(out, name)
		if i > 1 {
			path = fmt.Sprintf("%s-%d", path, i)
		}
		_, err := os.Lstat(path)
		if os.IsNotExist(err) {
			return path, nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot read the output folder %s (%w): choose another one with --out", out, err)
		}
	}
	return "", fmt.Errorf("%s has too many runs of this second: choose another folder with --out", out)
}

// PointLatest makes the link `latest` beside a directory lead to it, by rename, so that it always points somewhere.
func PointLatest(path string) error {
	out, name := filepath.Split(path)
	out = filepath.Clean(out)
	temporary := filepath.Join(out, fmt.Sprintf(".latest-%d", os.Getpid()))
	_ = os.Remove(temporary)
	if err := os.Symlink(name, temporary); err != nil {
		return fmt.Errorf("cannot make the link %s/latest: %w", out, err)
	}
	if err := os.Rename(temporary, filepath.Join(out, "latest")); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("cannot replace the link %s/latest: %w", out, err)
	}
	return nil
}
