package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of a Source. Each is wrapped in one sentence that names the file and the remedy.
var (
	ErrNoLog      = errors.New("no log to read")
	ErrEmpty      = errors.New("is empty")
	ErrDirectory  = errors.New("is a directory")
	ErrBinary     = errors.New("is not text")
	ErrTruncated  = errors.New("is truncated")
	ErrDictionary = errors.New("is compressed with a large dictionary")
	ErrRecording  = errors.New("cannot be read")
	ErrReadTwice  = errors.New("can be read only once")
)

// Source is a log: one or more files, or standard input. It can be read any number of times, standard input and
// other pipes once.
type Source struct {
	files []logFile
}

type logFile struct {
	path string
	size int64     // on disk, in bytes; 0 for a pipe
	pipe *openFile // already opened, to be read once; nil for a file
}

// Open finds the files of a log: paths, globs, or "-" for standard input. It looks at all of them, so that what is
// missing, unreadable, empty, binary or a directory is reported before anything starts.
func Open(paths []string, stdin io.Reader) (*Source, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: name a file, a glob such as 'access.log*', or - for standard input", ErrNoLog)
	}
	s := &Source{}
	var errs []error
	seen := map[string]bool{}
	for _, path := range paths {
		if path == "-" {
			if seen[path] {
				continue
			}
			seen[path] = true
			opened, err := openReader("standard input", stdin)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			s.files = append(s.files, logFile{path: "-", pipe: opened})
			continue
		}
		found, err := expand(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, path := range found {
			if seen[path] {
				continue
			}
			seen[path] = true
			file, err := inspect(path)
			if err != nil {
				// An empty file beside others is a log that was rotated a moment ago.
				if errors.Is(err, ErrEmpty) && len(found)+len(paths) > 2 {
					continue
				}
				errs = append(errs, err)
				continue
			}
			s.files = append(s.files, file)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(s.files) == 0 {
		return nil, fmt.Errorf("%s %w: there is nothing to read", strings.Join(paths, ", "), ErrEmpty)
	}
	return s, nil
}

// expand finds the files that a path or a glob names. A file of exactly that name takes precedence over a glob.
func expand(path string) ([]string, error) {
	if _, err := os.Lstat(path); err == nil || !strings.ContainsAny(path, "*?[") {
		return []string{path}, nil
	}
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("%s is not a glob pattern: %w", path, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: nothing matches %s: check the folder and the name", ErrNoLog, path)
	}
	slices.Sort(found)
	return found, nil
}

// inspect opens a file once, to find out early that it cannot be read.
func inspect(path string) (logFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return logFile{}, unopened(path, err)
	}
	opened, err := openPath(path)
	if err != nil {
		return logFile{}, err
	}
	if !info.Mode().IsRegular() { // a pipe: what was read of it is gone
		return logFile{path: path, pipe: opened}, nil
	}
	return logFile{path: path, size: info.Size()}, opened.Close()
}

func unopened(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: check the name (%w)", path, fs.ErrNotExist)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be read by this user: change its permissions or the user (%w)",
			path, fs.ErrPermission)
	}
	return fmt.Errorf("opening %s: %w", path, err)
}

// Paths returns the files in the order of Request.File; "-" is standard input.
func (s *Source) Paths() []string {
	paths := make([]string, len(s.files))
	for i, f := range s.files {
		paths[i] = f.path
	}
	return paths
}

// Size returns the size of all files on disk in bytes, compressed as they are; -1 when a pipe is among them.
func (s *Source) Size() int64 {
	var size int64
	for _, f := range s.files {
		if f.pipe != nil {
			return -1
		}
		size += f.size
	}
	return size
}

// headBytes is how much of a log is read to detect its format.
const headBytes = 256 << 10

// Head returns the first lines of the log, at most max, without using standard input up.
func (s *Source) Head(max int) ([][]byte, error) {
	var lines [][]byte
	for i := range s.files {
		opened, err := s.open(i, false)
		if err != nil {
			return nil, err
		}
		head, err := opened.buffer.Peek(headBytes)
		head = bytes.Clone(head)
		if s.files[i].pipe == nil {
			opened.Close()
		}
		if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
			return nil, opened.broken(err)
		}
		cut := len(head) == headBytes
		for len(head) > 0 && len(lines) < max {
			line, rest, found := bytes.Cut(head, []byte{'\n'})
			if !found && cut && len(lines) > 0 {
				break // half a line
			}
			lines, head = append(lines, bytes.TrimLeft(line, "\x00")), rest
		}
		if len(lines) >= max {
			break
		}
	}
	return lines, nil
}

// headLines is how many lines Detect is given.
const headLines = 1000

// FormatFor compiles what the user says of the log's format, or detects it where the user says nothing.
func (s *Source) FormatFor(spec Spec) (*Format, error) {
	if spec.Log != "" {
		return Compile(spec)
	}
	lines, err := s.Head(headLines)
	if err != nil {
		return nil, err
	}
	f, _, err := Detect(lines, spec.StrictHosts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.files[0].name(), err)
	}
	spec.Log = f.Name()
	compiled, err := Compile(spec)
	if err == nil {
		compiled.doubts = f.doubts
	}
	return compiled, err
}

func (f logFile) name() string {
	if f.path == "-" {
		return "standard input"
	}
	return f.path
}

// open starts reading a file. A pipe is used up by it if use is set.
func (s *Source) open(i int, use bool) (*openFile, error) {
	f := &s.files[i]
	if f.pipe == nil {
		return openPath(f.path)
	}
	if f.pipe.used {
		return nil, fmt.Errorf("%s %w: save it to a file first", f.name(), ErrReadTwice)
	}
	f.pipe.used = use
	return f.pipe, nil
}

// openFile is a log being read: its text, whatever it was compressed with.
type openFile struct {
	name    string
	file    *os.File // nil for standard input
	counter *countingReader
	buffer  *bufio.Reader // of the text
	closers []func()
	nuls    int64 // that it began with
	used    bool
}

// Close lets go of the file.
func (o *openFile) Close() error {
	for _, c := range o.closers {
		c()
	}
	o.closers = nil
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

// countingReader counts the bytes that were read from the disk, for progress.
type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
