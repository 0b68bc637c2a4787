package origin

// What the disk under the files has room for, and when they are on it.

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes returns how much an ordinary user may still write on the disk of path.
func freeBytes(path string) (bytes int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}

// syncDisk waits until what was written below path is on its disk.
func syncDisk(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.Syncfs(int(f.Fd())) // where it cannot be done, the run starts with writes under way, as it would without
}
