// Package instants writes down when things happened, without a collection of garbage in between.
package instants

import (
	"encoding/binary"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Book holds rows of instants, in nanoseconds since it was opened.
type Book struct {
	base    time.Time
	columns int
	rows    atomic.Int64
	ns      []int64
}

// Open sets aside the memory for so many rows, touches it, and turns collections off.
func Open(rows, columns int) *Book {
	b := &Book{base: time.Now(), columns: columns, ns: make([]int64, rows*columns)}
	for i := range b.ns {
		b.ns[i] = -1
	}
	debug.SetGCPercent(-1)
	return b
}

// Row takes the next row; rows past the last are numbered too, and not kept.
func (b *Book) Row() int64 { return b.rows.Add(1) - 1 }

// Note writes the present instant into a row's column.
func (b *Book) Note(row int64, column int) {
	if i := int(row)*b.columns + column; i < len(b.ns) {
		b.ns[i] = time.Since(b.base).Nanoseconds()
	}
}

// Write stores the rows as little-endian int64; -1 is what did not happen.
func (b *Book) Write(path string) error {
	ns := b.ns[:min(int(b.rows.Load())*b.columns, len(b.ns))]
	data := make([]byte, 0, 8*len(ns))
	for _, instant := range ns {
		data = binary.LittleEndian.AppendUint64(data, uint64(instant))
	}
	return os.WriteFile(path, data, 0o600)
}
