// Files of a run directory: their names, replaced whole, and what to do when the disk is full.

package record

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// file is what a run directory needs of a file; tests put others in its place.
type file interface {
	io.Writer
	io.WriterAt
	io.Closer
}

// appendFile is a file that only grows. After its first error it accepts nothing more and keeps that error.
type appendFile struct {
	path    string
	f       file
	written int64
	err     error
}

func (a *appendFile) Write(b []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.f.Write(b)
	a.written += int64(n)
	if err != nil {
		a.err = explain(err, a.path)
	}
	return n, a.err
}

// ReplaceJSON replaces a file whole: a reader finds the old one or the new one, never a part.
func ReplaceJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return ReplaceFile(path, append(text, '\n'))
}

// ReplaceFile replaces a file whole by a text.
func ReplaceFile(path string, text []byte) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temp, text, 0o644); err != nil {
		os.Remove(temp)
		return explain(err, path)
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return explain(err, path)
	}
	return nil
}

// ErrNotEmpty says that the output folder holds something already.
var ErrNotEmpty = errors.New("the output folder exists and is not empty")

// makeDir makes the folder and those above it, or takes it when it is empty.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return explain(err, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return explain(err, path)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w: choose another one with --out, or remove it first", path, ErrNotEmpty)
	}
	return nil
}

// explain adds to an error of the file system what to do about it. The error can still be found with errors.Is.
func explain(err error, path string) error {
	remedy := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "free some space there, or choose a folder on another disk with --out"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = "choose a folder that you may write to with --out"
	case errors.Is(err, syscall.ENOTDIR):
		remedy = "a part of that path is a file: choose another folder with --out"
	case errors.Is(err, syscall.EFBIG):
		remedy = "the file system or `ulimit -f` allows no longer file: choose a folder on another disk with --out"
	default:
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	return fmt.Errorf("cannot write %s: %w: %s", path, cause(err), remedy)
}

// cause returns the error without the path that os puts in front of it, which explain says already.
func cause(err error) error {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		return inPath.Err
	}
	return err
}

// reserveName is a file that holds room for the end of run.json and for summary.json, so that a run whose disk
// is full can still be marked as failed. It is gone when the run has ended.
const reserveName = ".reserve"

const reserveBytes = 64 << 10

func makeReserve(path string) error {
	room := make([]byte, reserveBytes)
	rand.Read(room) // zeros would take no room where the file system compresses
	if err := os.WriteFile(path, room, 0o644); err != nil {
		os.Remove(path)
		return explain(err, path)
	}
	return nil
}
