package origin

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
)

// content makes pseudo-random bytes, the same for the same key. They do not compress and no two files are alike,
// so that a file system that compresses or deduplicates stores all of them.
type content struct {
	source *rand.ChaCha8
	buffer []byte
}

const chunkBytes = 256 << 10

func newContent() *content {
	return &content{source: rand.NewChaCha8([32]byte{}), buffer: make([]byte, chunkBytes)}
}

func (c *content) seed(key uint64) {
	var seed [32]byte
	copy(seed[:], "plimsoll origin file v1")
	binary.LittleEndian.PutUint64(seed[24:], key)
	c.source.Seed(seed)
}

// writeFile writes the file of a key, size bytes long, and calls written from time to time with how many are there.
func (c *content) writeFile(ctx context.Context, folder *Folder, key uint64, size int64, written func(int64)) (err error) {
	f, err := folder.create(fileName(key))
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	c.seed(key)
	for done := int64(0); done < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := c.buffer[:min(size-done, chunkBytes)]
		c.source.Read(chunk)
		if _, err := f.Write(chunk); err != nil {
			return err
		}
		done += int64(len(chunk))
		written(done)
	}
	return nil
}

// block is what is sent for answers that have no file.
var block = func() []byte {
	c := newContent()
	c.seed(0)
	c.source.Read(c.buffer)
	return c.buffer
}()

// memoryFile reads as size bytes, over and over the same block.
type memoryFile struct{ size, at int64 }

func (m *memoryFile) Read(b []byte) (int, error) {
	if m.at >= m.size {
		return 0, io.EOF
	}
	from := block[m.at%chunkBytes:]
	n := copy(b, from[:min(int64(len(from)), m.size-m.at)])
	m.at += int64(n)
	return n, nil
}

func (m *memoryFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += m.at
	case io.SeekEnd:
		offset += m.size
	}
	if offset < 0 {
		return 0, os.ErrInvalid
	}
	m.at = offset
	return offset, nil
}
