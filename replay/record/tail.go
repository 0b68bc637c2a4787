package record

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const tailBatch = 1024

// Tail reads the records of a run while they are written, each once.
type Tail struct {
	file    *os.File
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
	f, _, err := openRecords(path)
	if err != nil {
		return nil, err
	}
	return &Tail{file: f, at: headerSize, bytes: make([]byte, tailBatch*Size), records: make([]Record, tailBatch)}, nil
}

// SkipWritten leaves out what is written so far.
func (t *Tail) SkipWritten() error {
	info, err := t.file.Stat()
	if err == nil {
		t.at = headerSize + (info.Size()-headerSize)/Size*Size
	}
	return err
}

// Next returns further records, some at a time; none where there are no whole ones. They are valid until the next call.
func (t *Tail) Next() ([]Record, error) {
	n, err := t.file.ReadAt(t.bytes, t.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	n /= Size
	for i := range n {
		t.records[i].get((*[Size]byte)(t.bytes[i*Size:]))
	}
	t.at += int64(n) * Size
	return t.records[:n], nil
}

// Stat describes the file.
func (t *Tail) Stat() (os.FileInfo, error) { return t.file.Stat() }

// Close closes the file.
func (t *Tail) Close() error { return t.file.Close() }
