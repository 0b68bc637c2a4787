package origin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

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
