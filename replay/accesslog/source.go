package accesslog

// The files of a log: found, checked, and cut into chunks.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
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
	again []string // paths that were named again
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
				if !slices.Contains(s.again, path) {
					s.again = append(s.again, path)
				}
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
		return logFile{}, explainOpen(path, err)
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

func explainOpen(path string, err error) error {
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

// Again returns the paths that were named again, and are read once.
func (s *Source) Again() []string { return s.again }

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

// FormatFor compiles what the user says of the log's format, or detects it where the user says nothing. "guess" takes what
// the lines look like where no known format reads them.
func (s *Source) FormatFor(spec Spec) (*Format, error) {
	takesGuess := strings.EqualFold(spec.Log, "guess")
	if spec.Log != "" && !takesGuess {
		f, err := Compile(spec)
		if err == nil {
			err = s.coarsen(f)
		}
		return f, err
	}
	lines, err := s.Head(headLines)
	if err != nil {
		return nil, err
	}
	f, _, err := Detect(lines, spec.StrictHosts)
	if err != nil && takesGuess {
		if requests := slices.DeleteFunc(slices.Clone(lines), Ignored); len(requests) > 0 {
			if _, guessed := guessFrom(requests); guessed != nil {
				f, err = guessed, nil
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.files[0].name(), err)
	}
	spec.Log = f.Name()
	compiled, err := Compile(spec)
	if err == nil {
		compiled.warning = f.warning
		err = s.coarsen(compiled)
	}
	return compiled, err
}

// coarsen makes a second of the resolution of a format whose times may have a fraction, where none of the first lines has
// one: Logpush and JSON formats write them or not.
func (s *Source) coarsen(f *Format) error {
	if f.dateTime.kind != readsAny || f.resolution >= time.Second || !strings.Contains(f.log, "%x") {
		return nil
	}
	lines, err := s.Head(headLines)
	if err != nil {
		return err
	}
	valid := 0
	var r Request
	for _, line := range lines {
		if Ignored(line) || f.Parse(line, &r) != nil {
			continue
		}
		if valid++; f.at.isFine {
			return nil
		}
	}
	if valid > 0 {
		f.resolution = time.Second
	}
	return nil
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

// How much of two files is compared at most. Those that are the same for so long are of the same requests.
const (
	comparedHead  = 4 << 10
	comparedBytes = 64 << 20
)

// beginning is how a file begins.
type beginning struct {
	file int
	text []byte
}

// Duplicates returns two files of which one begins with all that is in the other, packed or not, as a log and the copy
// of it that a rotation makes: where both are replayed, the load is doubled. What cannot be read is not a duplicate, but
// may be one up to there: a copy that is still being packed is cut off. Pipes are left out.
func (s *Source) Duplicates() (a, b int, found bool) {
	var all []beginning
	for i := range s.files {
		if text := s.beginning(i); hasRequest(text) {
			all = append(all, beginning{i, text})
		}
	}
	// Those that begin alike stand together, the shorter first.
	slices.SortStableFunc(all, func(a, b beginning) int { return bytes.Compare(a.text, b.text) })
	for i, one := range all {
		for _, other := range all[i+1:] {
			if !bytes.HasPrefix(other.text, one.text) {
				break
			}
			if len(one.text) < comparedHead || s.begin(one.file, other.file) {
				return min(one.file, other.file), max(one.file, other.file), true
			}
		}
	}
	return 0, 0, false
}

// beginning returns the head of a file's text, all of it where that is short; nil for a pipe.
func (s *Source) beginning(i int) []byte {
	if s.files[i].pipe != nil || len(s.files) == 1 {
		return nil
	}
	opened, err := s.open(i, false)
	if err != nil {
		return nil
	}
	defer opened.Close()
	text, _ := opened.buffer.Peek(comparedHead)
	return bytes.Clone(text)
}

// hasRequest reports whether there is more than comments, of which the logs of a server may all have the same.
func hasRequest(text []byte) bool {
	for line := range bytes.Lines(text) {
		if !Ignored(bytes.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}

// begin reports whether two files are the same until one of them ends.
func (s *Source) begin(a, b int) bool {
	one, err := s.open(a, false)
	if err != nil {
		return false
	}
	defer one.Close()
	other, err := s.open(b, false)
	if err != nil {
		return false
	}
	defer other.Close()
	left, right := make([]byte, minChunkBytes), make([]byte, minChunkBytes)
	for range comparedBytes / minChunkBytes {
		n, _ := io.ReadFull(one.buffer, left)
		m, _ := io.ReadFull(other.buffer, right)
		shorter := min(n, m)
		if !bytes.Equal(left[:shorter], right[:shorter]) {
			return false
		}
		if shorter < minChunkBytes {
			return true
		}
	}
	return true
}

// MaxLineBytes is the longest line that is read; longer ones are rejected.
const MaxLineBytes = 1 << 20

// cutter cuts a file into chunks at the ends of lines.
type cutter struct {
	file  *openFile
	index int
	size  int       // of a chunk, in bytes
	lines uint64    // so far
	carry []byte    // the beginning of a line whose end is yet to come
	sum   hash.Hash // of all text that was read; nil: nobody asked
	nuls  int64     // that were skipped since the last chunk
	named bool      // comments name the fields of the lines after them
	now   []byte    // the last such comment
}

// next reads the next chunk. Its err is io.EOF when it is the last.
func (k *cutter) next() *chunk {
	c := newChunk()
	c.file, c.firstLine = k.index, k.lines+1
	if cap(c.text) < k.size {
		c.text = make([]byte, 0, k.size)
	}
	limit := k.size
	c.text = append(c.text, k.carry...)
	k.carry = k.carry[:0]
	for c.err == nil {
		c.text, c.err = k.fill(c.text, limit)
		if c.err != nil {
			break
		}
		if last := bytes.LastIndexByte(c.text, '\n'); last >= 0 {
			k.carry = append(k.carry, c.text[last+1:]...)
			c.text = c.text[:last+1]
			break
		}
		if line := bytes.TrimLeft(c.text, "\x00"); len(line) < len(c.text) { // a hole may be larger than memory
			k.nuls += int64(len(c.text) - len(line))
			c.text, limit = append(c.text[:0], line...), k.size
			continue
		}
		if len(c.text) > MaxLineBytes {
			c.overlong = true
			c.text = c.text[:rejectText]
			c.err = k.skipLine()
			break
		}
		limit = min(2*limit, MaxLineBytes+1)
	}
	c.counts.NULs, k.nuls = k.nuls, 0
	if c.fields = k.now; k.named {
		if last := lastFields(c.text); last != nil {
			k.now = bytes.Clone(last)
		}
	}
	if c.overlong {
		k.lines++
	} else {
		k.lines += uint64(bytes.Count(c.text, []byte{'\n'}))
	}
	return c
}

// fill reads until the text is limit bytes long.
func (k *cutter) fill(text []byte, limit int) ([]byte, error) {
	if cap(text) < limit {
		text = append(make([]byte, 0, limit), text...)
	}
	for len(text) < limit {
		n, err := k.file.buffer.Read(text[len(text):limit])
		k.add(text[len(text) : len(text)+n])
		text = text[:len(text)+n]
		if err != nil {
			return text, k.ended(err)
		}
	}
	return text, nil
}

// skipLine reads past the end of a line.
func (k *cutter) skipLine() error {
	for {
		skipped, err := k.file.buffer.ReadSlice('\n')
		k.add(skipped)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return k.ended(err)
		}
	}
}

// add adds text to the sum.
func (k *cutter) add(text []byte) {
	if k.sum != nil {
		k.sum.Write(text)
	}
}

func (k *cutter) ended(err error) error {
	if err == io.EOF {
		return err
	}
	return k.file.broken(err)
}
