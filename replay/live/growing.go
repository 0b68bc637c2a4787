package live

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"plimsoll/replay/record"
)

const (
	idle        = time.Minute // a run that writes nothing counts as under way for this long
	largestJSON = 4 << 20
)

// growing is a run directory that somebody writes. Its tail is nil once nothing more is to come.
type growing struct {
	directory string
	facts     record.Run
	file      os.FileInfo // of its requests.npy
	tail      *record.Tail
	figures   *figures
	show      func(underWay bool)
	known     []string // names of routes, as they were read last
}

// openGrowing returns the run in a directory: nil where its records are not begun yet, without a tail where it was over
// since an instant. Of one that began before that instant nothing is read that is written so far.
func openGrowing(directory string, since time.Time) (*growing, error) {
	g := &growing{directory: directory}
	if err := readJSON(g.path("run.json"), &g.facts); err != nil {
		return nil, err
	}
	if g.facts.StartedAt.IsZero() && g.facts.Status == record.Running {
		return nil, nil
	}
	before := g.facts.StartedAt.Before(since)
	info, err := os.Lstat(g.path("requests.npy"))
	if before && (err != nil || g.facts.Status != record.Running || since.Sub(info.ModTime()) > idle) {
		return g, nil
	}
	tail, err := record.OpenTail(g.path("requests.npy"))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil
	case err != nil:
		return g, err // reported once: it is not tried again
	}
	g.tail = tail
	if before {
		err = tail.SkipWritten()
	}
	var statErr error
	g.file, statErr = tail.Stat()
	return g, errors.Join(err, statErr)
}

func (g *growing) path(name string) string { return filepath.Join(g.directory, name) }

// over reports whether nothing more is to come.
func (g *growing) over() bool { return g.tail == nil }

// same reports whether both are one run, which was moved. A file system gives a later run the number of a file that is
// gone, but not its start.
func (g *growing) same(other *growing) bool {
	return g.file != nil && other.file != nil && os.SameFile(g.file, other.file) && g.facts.StartedAt.Equal(other.facts.StartedAt.Time)
}

// look counts what was written since the last look. A run that says that it has ended, or that was moved, has written
// all before it did so.
func (g *growing) look(now time.Time) error {
	if g.over() {
		return nil
	}
	var facts record.Run
	err := readJSON(g.path("run.json"), &facts)
	over := err != nil || facts.Status != record.Running
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for {
		records, readErr := g.tail.Next()
		if len(records) == 0 {
			err = errors.Join(err, readErr)
			break
		}
		g.figures.Observe(records)
	}
	info, statErr := g.tail.Stat()
	g.show(!over && statErr == nil && now.Sub(info.ModTime()) <= idle)
	if over {
		g.close()
	}
	return err
}

func (g *growing) close() {
	if !g.over() {
		_ = g.tail.Close()
		g.tail = nil
	}
}

// names returns the names of the routes so far. They are written before the records that have them.
func (g *growing) names() []string {
	var names []string
	if readJSON(g.path("routes.json"), &names) == nil {
		g.known = names
	}
	return g.known
}

// readJSON reads a regular file that is not too large to be what it should be.
func readJSON(path string, into any) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > largestJSON {
		return fmt.Errorf("%s: is not a file of a run directory", path)
	}
	return record.ReadJSON(path, into)
}
