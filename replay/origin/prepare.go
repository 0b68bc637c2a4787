package origin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// markerName is the file by which a folder of files is known to be one of ours.
const markerName = ".plimsoll-origin.json"

// marker names the catalog that the folder's files were made for; Plan is its fingerprint, "" until the files are
// complete.
type marker struct {
	Format int    `json:"format"`
	Plan   string `json:"plan"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

const markerFormat = 1

// Progress is called with the bytes written so far, and those of all files.
type Progress func(doneBytes, totalBytes int64)

// ErrForeign says that the folder holds something that no origin put there.
var ErrForeign = errors.New("is not empty and was not made by `replay origin`")

// ErrNoSpace says that the files do not fit on the disk.
var ErrNoSpace = errors.New("not enough free space")

// Prepare makes the catalog's files below root. Files that are there with the right size are kept, and a second
// run for the same log does not look at them at all. Files of other logs stay where they are.
func (p *Catalog) Prepare(ctx context.Context, root string, progress Progress) error {
	m, err := claim(root)
	if err != nil {
		return err
	}
	fingerprint := p.fingerprint()
	if m.Plan == fingerprint {
		return nil
	}
	missing, missingBytes := p.missing(root)
	if err := checkSpace(root, missingBytes); err != nil {
		return err
	}
	if err := writeMarker(root, marker{Format: markerFormat}); err != nil {
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
		err := content.writeFile(ctx, filePath(root, key), key, size, func(n int64) { progress(done+n, p.stats.FileBytes) })
		if err != nil {
			return fmt.Errorf("the origin's files: %w", err)
		}
		done += size
	}
	// Writes that are still under way would disturb the run that is about to start.
	syncDisk(root)
	return writeMarker(root, marker{Format: markerFormat, Plan: fingerprint, Files: p.stats.Files, Bytes: p.stats.FileBytes})
}

// claim makes root, or finds that it is ours.
func claim(root string) (marker, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return marker{}, fmt.Errorf("the origin's folder: %w: choose another --root", err)
	}
	text, err := os.ReadFile(filepath.Join(root, markerName))
	if err == nil {
		var m marker
		if json.Unmarshal(text, &m) != nil || m.Format != markerFormat {
			m = marker{} // of another version, or truncated: the files are checked one by one
		}
		return m, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return marker{}, fmt.Errorf("the origin's folder: %w: choose another --root", err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return marker{}, fmt.Errorf("the origin's folder: %w: choose another --root", err)
	}
	if len(entries) > 0 {
		return marker{}, fmt.Errorf("the folder %s %w: choose an empty one with --root", root, ErrForeign)
	}
	return marker{}, nil
}

func writeMarker(root string, m marker) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temp := filepath.Join(root, markerName+".new")
	if err := os.WriteFile(temp, append(text, '\n'), 0o644); err != nil {
		os.Remove(temp)
		return fmt.Errorf("the origin's folder: %w: choose another --root", err)
	}
	return os.Rename(temp, filepath.Join(root, markerName))
}

// missing returns the keys of files that are not there with the right size, in the order of their folders.
func (p *Catalog) missing(root string) (keys []uint64, bytes int64) {
	for key, a := range p.answers {
		if !a.onDisk {
			continue
		}
		if info, err := os.Stat(filePath(root, key)); err == nil && info.Mode().IsRegular() && info.Size() == a.size {
			continue
		}
		keys = append(keys, key)
		bytes += a.size
	}
	slices.Sort(keys)
	return keys, bytes
}

// filePath returns the path of a target's file. It shows nothing of the target.
func filePath(root string, key uint64) string {
	name := fmt.Sprintf("%016x", key)
	return filepath.Join(root, name[:2], name[2:])
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
