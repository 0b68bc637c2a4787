package origin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Progress is called with the bytes written so far, and those of all files.
type Progress func(doneBytes, totalBytes int64)

// ErrNoSpace says that the files do not fit on the disk.
var ErrNoSpace = errors.New("not enough free space")

// Prepare makes the catalog's files in the folder. Files that are there with the right size are kept, and a second
// run for the same log does not look at them at all. Files of other logs stay where they are.
func (p *Catalog) Prepare(ctx context.Context, folder *Folder, progress Progress) error {
	m, err := folder.claim()
	if err != nil {
		return err
	}
	fingerprint := p.fingerprint()
	if m.Plan == fingerprint {
		return nil
	}
	missing, missingBytes := p.missing(folder)
	if err := checkSpace(folder.path, missingBytes); err != nil {
		return err
	}
	if err := folder.mark(marker{Format: markerFormat}); err != nil {
		return err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	done := p.stats.FileBytes - missingBytes
	content := newContent()
	for _, key := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := p.answers[key].size
		err := content.writeFile(ctx, folder, key, size, func(n int64) { progress(done+n, p.stats.FileBytes) })
		if err != nil {
			return fmt.Errorf("the origin's files: %w", err)
		}
		done += size
	}
	// Writes that are still under way would disturb the run that is about to start.
	syncDisk(folder.path)
	return folder.mark(marker{Format: markerFormat, Plan: fingerprint, Files: p.stats.Files, Bytes: p.stats.FileBytes})
}

// missing returns the keys of files that are not there with the right size, in the order of their folders.
func (p *Catalog) missing(folder *Folder) (keys []uint64, bytes int64) {
	for key, a := range p.answers {
		if !a.onDisk || folder.has(fileName(key), a.size) {
			continue
		}
		keys = append(keys, key)
		bytes += a.size
	}
	slices.Sort(keys)
	return keys, bytes
}

// fileName returns the name of a target's file in the folder. It shows nothing of the target.
func fileName(key uint64) string {
	name := fmt.Sprintf("%016x", key)
	return filepath.Join(name[:2], name[2:])
}

// fingerprint returns a text that is the same for catalogs with the same files, in whatever order they were added.
func (p *Catalog) fingerprint() string {
	var sum uint64
	for key, a := range p.answers {
		if a.onDisk {
			sum += mix(key ^ mix(uint64(a.size)))
		}
	}
	return fmt.Sprintf("%016x-%d-%d", sum, p.stats.Files, p.stats.FileBytes)
}

// mix applies the finalizer of SplitMix64: one bit in changes half of the bits out.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// keepFreeBytes are left on the disk, for what else lives there.
const keepFreeBytes = 64 << 20

func checkSpace(root string, needed int64) error {
	free, known := freeBytes(root)
	if !known || needed == 0 || needed+keepFreeBytes <= free {
		return nil
	}
	return fmt.Errorf("%w: the log's files take %d MiB more, and %s has %d MiB: choose a --root on another disk, or serve more "+
		"from memory with --max-bytes", ErrNoSpace, needed>>20, root, free>>20)
}
