package accesslog

// A file of a log is opened: unpacked, and checked to be text.

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

func openPath(path string) (*openFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		file.Close()
		return nil, fmt.Errorf("%s %w: name the logs in it, as in '%s/*.log'", path, ErrDirectory, path)
	}
	opened, err := openReader(path, file)
	if err != nil {
		file.Close()
		return nil, err
	}
	opened.file = file
	return opened, nil
}

// openReader finds out what a log is compressed with and that there is text in it.
func openReader(name string, r io.Reader) (*openFile, error) {
	o := &openFile{name: name, counter: &countingReader{Reader: r}}
	disk := bufio.NewReaderSize(o.counter, diskBufferBytes)
	head, err := disk.Peek(6)
	if len(head) == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return nil, fmt.Errorf("%s %w: there is nothing to read", name, ErrEmpty)
	}
	for _, a := range archives {
		if bytes.HasPrefix(head, []byte(a.magic)) {
			return nil, fmt.Errorf("%s %w but %s: unpack it first", name, ErrBinary, a.name)
		}
	}
	o.buffer = disk
	for _, c := range compressions {
		if !bytes.HasPrefix(head, []byte(c.magic)) {
			continue
		}
		text, closer, err := c.open(disk)
		if err != nil {
			return nil, o.broken(err)
		}
		if closer != nil {
			o.closers = append(o.closers, closer)
		}
		o.buffer = bufio.NewReaderSize(text, headBytes)
		break
	}
	o.skipNULs()
	if err := o.checkText(); err != nil {
		o.Close()
		return nil, err
	}
	o.buffer = unwrap(o.buffer)
	return o, nil
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

// skipNULs skips the zeros that a log begins with: a crash leaves a block of them, and a server that goes on where it was
// in a file that was cut to nothing leaves a hole of any size.
func (o *openFile) skipNULs() {
	for {
		if head, _ := o.buffer.Peek(1); len(head) == 0 || head[0] != 0 {
			return
		}
		head, _ := o.buffer.Peek(o.buffer.Buffered())
		n, _ := o.buffer.Discard(len(head) - len(bytes.TrimLeft(head, "\x00")))
		o.nuls += int64(n)
	}
}

// checkText rejects what is clearly not a log: many control characters in the first kilobytes. A few do not matter:
// scanners put them into requests, and a crash may leave a block of zeros.
func (o *openFile) checkText() error {
	head, err := o.buffer.Peek(4 << 10)
	if len(head) == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return o.broken(err)
		}
		return fmt.Errorf("%s %w: there is nothing to read", o.name, ErrEmpty)
	}
	control, before := 0, byte('\n')
	for _, c := range head {
		if c == 0 && before == '\n' { // zeros before a line
			continue
		}
		if before = c; c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b {
			control++
		}
	}
	if control*10 > len(head) && !(control == bytes.Count(head, []byte{0}) && head[len(head)-1] != 0) {
		return fmt.Errorf("%s %w: an access log is text, plain or compressed with gzip, bzip2, xz or zstd",
			o.name, ErrBinary)
	}
	return nil
}

// broken explains an error in the middle of a log.
func (o *openFile) broken(err error) error {
	tooLarge := func(unpack string) error {
		return fmt.Errorf("%s %w: unpacking it takes more than %d MiB; where you trust it, use %s | replay run -",
			o.name, ErrDictionary, maxDictionaryBytes>>20, unpack)
	}
	switch {
	case errors.Is(err, ErrTruncated), errors.Is(err, ErrRecording):
		return fmt.Errorf("%s %w", o.name, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, xz.ErrBuf):
		return fmt.Errorf("%s %w: its compressed data ends too early: copy it again", o.name, ErrTruncated)
	case errors.Is(err, xz.ErrMemlimit):
		return tooLarge("xz -dc LOG.xz")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return tooLarge("zstd -dc --long=31 LOG.zst")
	}
	return fmt.Errorf("%s cannot be read to its end: %w", o.name, err)
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

// maxDictionaryBytes is how much memory a compressed log may ask for to be unpacked: what zstd itself allows, and twice
// what xz -9 needs. A header of a few bytes can ask for gigabytes.
const maxDictionaryBytes = 128 << 20

// compressions are known by the bytes that a file begins with, never by its name.
var compressions = [...]struct {
	name  string
	magic string
	open  func(r io.Reader) (io.Reader, func(), error)
}{
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.Reader, func(), error) {
		z, err := gzip.NewReader(r)
		return z, nil, err
	}},
	{"bzip2", "BZh", func(r io.Reader) (io.Reader, func(), error) { return bzip2.NewReader(r), nil, nil }},
	{"xz", "\xfd7zXZ\x00", func(r io.Reader) (io.Reader, func(), error) {
		z, err := xz.NewReader(r, maxDictionaryBytes)
		return z, nil, err
	}},
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, func(), error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDictionaryBytes))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}},
}

// archives are not logs but hold them.
var archives = [...]struct{ name, magic string }{
	{"a zip archive", "PK\x03\x04"}, {"a 7-Zip archive", "7z\xbc\xaf\x27\x1c"}, {"a RAR archive", "Rar!"},
}

const diskBufferBytes = 256 << 10
