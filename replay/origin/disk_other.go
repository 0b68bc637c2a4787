//go:build !linux

package origin

func freeBytes(string) (bytes int64, known bool) { return 0, false }

func syncDisk(string) {}
