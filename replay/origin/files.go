package origin

// The origin's files, made in a folder and kept there from one call to the next.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
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

// ErrForeign says that the folder holds something that no origin put there.
var ErrForeign = errors.New("is not empty and was not made by `replay origin`")

// ErrStray says that a link, a pipe or the like stands where an origin has a file or a folder.
var ErrStray = errors.New("is not a plain file or folder")

// Folder is where an origin has its files. Whatever links lie in it, nothing outside of it is read or written.
type Folder struct {
	path string
	root *os.Root
}

// OpenFolder makes the folder where it is missing, and opens it. The caller closes it.
func OpenFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, unusable(err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, unusable(err)
	}
	return &Folder{path: path, root: root}, nil
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.root.Close() }

func unusable(err error) error {
	return fmt.Errorf("the origin's folder: %w: choose another --root", err)
}

func (f *Folder) stray(name string) error {
	return fmt.Errorf("%s %w: remove it, or choose another folder with --root", filepath.Join(f.path, name), ErrStray)
}

// open opens a file to be read. It does not wait for the other end of a pipe.
func (f *Folder) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, f.stray(name)
	}
	return file, nil
}

// create makes a new file, in place of an old one. It never writes into the old one, which may be the file of another
// name too.
func (f *Folder) create(name string) (*os.File, error) {
	if dir := filepath.Dir(name); dir != "." {
		if err := f.makeDir(dir); err != nil {
			return nil, err
		}
	}
	info, err := f.root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, f.stray(name)
	case err == nil:
		err = f.root.Remove(name)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func (f *Folder) makeDir(name string) error {
	err := f.root.Mkdir(name, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := f.root.Lstat(name); err != nil || !info.IsDir() {
		return f.stray(name)
	}
	return nil
}

// has reports whether a file is there with this size.
func (f *Folder) has(name string, size int64) bool {
	info, err := f.root.Lstat(name)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

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

// claim finds that the folder is ours, or empty.
func (f *Folder) claim() (marker, error) {
	file, err := f.open(markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return marker{}, f.checkEmpty()
	}
	if errors.Is(err, ErrStray) {
		return marker{}, err
	}
	if err != nil {
		return marker{}, unusable(err)
	}
	defer file.Close()
	var m marker
	if json.NewDecoder(io.LimitReader(file, 4<<10)).Decode(&m) != nil || m.Format != markerFormat {
		m = marker{} // of another version, or truncated: the files are checked one by one
	}
	return m, nil
}

func (f *Folder) checkEmpty() error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return unusable(err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %s %w: choose an empty one with --root", f.path, ErrForeign)
	}
	return nil
}

// mark writes the marker, by rename, so that it is always there as a whole.
func (f *Folder) mark(m marker) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	const temp = markerName + ".new"
	file, err := f.create(temp)
	if err != nil {
		return unusable(err)
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		_ = f.root.Remove(temp)
		return unusable(err)
	}
	return os.Rename(filepath.Join(f.path, temp), filepath.Join(f.path, markerName))
}

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
