package record

import (
	"crypto/rand"
	"os"
)

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
