// Run directories read back, whole or as they grow.

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
)

// Reader reads a run directory, also one that is being written or was cut off by a kill -9.
type Reader struct {
	Run    Run
	Routes []string
	Errors []string
	// Summary is nil where the run has not ended.
	Summary *Summary

	recordFile
}

// ErrFormat says that requests.npy holds other columns than those that this program reads.
var ErrFormat = errors.New("requests.npy has other columns than formats 1 and 2 of the run directory")

// OpenRun opens the run directory at dir.
func OpenRun(dir string) (*Reader, error) {
	r := new(Reader)
	for name, into := range map[string]any{"run.json": &r.Run, "routes.json": &r.Routes, "errors.json": &r.Errors} {
		if err := ReadJSON(filepath.Join(dir, name), into); err != nil {
			return nil, err
		}
	}
	var s Summary
	switch err := ReadJSON(filepath.Join(dir, "summary.json"), &s); {
	case err == nil:
		r.Summary = &s
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	var err error
	r.recordFile, err = openRecords(filepath.Join(dir, "requests.npy"))
	if err != nil {
		return nil, err
	}
	return r, nil
}

// recordFile is an open requests.npy of either format: the length of one record, and the number of whole ones.
type recordFile struct {
	file    *os.File
	size, n int64
}

// openRecords opens a requests.npy and checks its header. Where not even that is whole, the error is io.EOF or
// io.ErrUnexpectedEOF.
func openRecords(path string) (recordFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return recordFile{}, err
	}
	header := make([]byte, headerSize)
	size := int64(Size)
	if _, err = io.ReadFull(f, header); err == nil {
		switch {
		case sameColumns(header, headerText, shapeOffset):
		case sameColumns(header, headerTextV1, shapeOffsetV1):
			size = sizeV1
		default:
			err = ErrFormat
		}
	}
	info, statErr := f.Stat()
	if err := errors.Join(err, statErr); err != nil {
		f.Close()
		return recordFile{}, fmt.Errorf("%s: %w", path, err)
	}
	return recordFile{f, size, (info.Size() - headerSize) / size}, nil
}

// sameColumns compares all of a header but the number of records.
func sameColumns(header []byte, want string, shapeOffset int64) bool {
	end := shapeOffset + shapeDigits
	return string(header[:shapeOffset]) == want[:shapeOffset] && string(header[end:]) == want[end:]
}

// Len returns the number of whole records, by the length of the file: a truncated last record does not count.
func (r *Reader) Len() int64 { return r.n }

// Records yields all whole records in the order of the file. The error, if any, comes last. What format 1 does not have is
// unknown: 0, or UnknownLateUS.
func (r *Reader) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		const batch = 1024
		buffer := make([]byte, batch*r.size)
		for at := int64(0); at < r.n; {
			n := min(batch, r.n-at)
			b := buffer[:n*r.size]
			if _, err := r.file.ReadAt(b, headerSize+at*r.size); err != nil {
				yield(Record{}, err)
				return
			}
			for ; len(b) > 0; b = b[r.size:] {
				var record Record
				record.get(b[:r.size])
				if !yield(record, nil) {
					return
				}
			}
			at += n
		}
	}
}

// Close closes the reader's file.
func (r *Reader) Close() error { return r.file.Close() }

// ReadJSON reads a JSON file. The error names it.
func ReadJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

const tailBatch = 1024

// Tail reads the records of a run while they are written, each once.
type Tail struct {
	file    *os.File
	size    int64 // of one record
	at      int64 // bytes that are read, the header among them
	bytes   []byte
	records []Record
}

// OpenTail opens a requests.npy. Where not even its header is whole yet, the error is io.EOF or io.ErrUnexpectedEOF.
func OpenTail(path string) (*Tail, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // to open a pipe would wait for its writer
		return nil, fmt.Errorf("%s: is not a regular file", path)
	}
	f, err := openRecords(path)
	if err != nil {
		return nil, err
	}
	return &Tail{
		file: f.file, size: f.size, at: headerSize, bytes: make([]byte, tailBatch*f.size), records: make([]Record, tailBatch),
	}, nil
}

// SkipWritten leaves out what is written so far.
func (t *Tail) SkipWritten() error {
	info, err := t.file.Stat()
	if err == nil {
		t.at = headerSize + (info.Size()-headerSize)/t.size*t.size
	}
	return err
}

// Next returns further records, some at a time; none if no whole record has come. They are valid until the next call.
func (t *Tail) Next() ([]Record, error) {
	n, err := t.file.ReadAt(t.bytes, t.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	whole := int64(n) / t.size
	for i := range whole {
		t.records[i].get(t.bytes[i*t.size : (i+1)*t.size])
	}
	t.at += whole * t.size
	return t.records[:whole], nil
}

// Stat describes the file.
func (t *Tail) Stat() (os.FileInfo, error) { return t.file.Stat() }

// Close closes the file.
func (t *Tail) Close() error { return t.file.Close() }
