package instants

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

func TestRowsAreWrittenInOrderAndUpToTheLast(t *testing.T) {
	book := Open(2, 2)
	for range 3 {
		row := book.Row()
		book.Note(row, 0)
		if row != 1 {
			book.Note(row, 1)
		}
	}
	path := filepath.Join(t.TempDir(), "instants")
	if err := book.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) != 2*2*8 {
		t.Fatalf("%d bytes, error %v; want two rows of two", len(data), err)
	}
	var ns [4]int64
	for i := range ns {
		ns[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	if ns[0] > ns[1] || ns[1] > ns[2] || ns[3] != -1 {
		t.Fatalf("%v: want instants that rise, and -1 for what did not happen", ns)
	}
}
