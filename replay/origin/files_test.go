package origin

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallPlan has five files of 1 to 5 KB, and one of more than a chunk.
func smallPlan() *Catalog {
	p := NewCatalog(plenty)
	for i := range 5 {
		p.Add(fmt.Appendf(nil, "/secret-token-%d", i), "GET", 200, int64(i+1)*1000)
	}
	p.Add([]byte("/long"), "GET", 200, chunkBytes+17)
	p.Add([]byte("/gone"), "GET", 404, 100)
	return p
}

// prepare makes the files of a catalog in the folder root.
func prepare(t *testing.T, p *Catalog, root string, progress Progress) error {
	t.Helper()
	folder, err := OpenFolder(root)
	if err != nil {
		return err
	}
	defer folder.Close()
	return p.Prepare(context.Background(), folder, progress)
}

// pathOf is the path of a target's file.
func pathOf(root string, key uint64) string { return filepath.Join(root, fileName(key)) }

// sizes of all files below root but the marker, by path.
func sizes(t *testing.T, root string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == markerName {
			return err
		}
		info, err := d.Info()
		found[path] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPrepareWritesFilesOfTheLoggedSizes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "origin")
	p := smallPlan()
	var last int64
	if err := prepare(t, p, root, func(done, total int64) {
		if done < last || total != p.Stats().FileBytes {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last = done
	}); err != nil {
		t.Fatal(err)
	}
	found := sizes(t, root)
	if len(found) != 6 || last != p.Stats().FileBytes {
		t.Errorf("%d files, progress ended at %d of %d", len(found), last, p.Stats().FileBytes)
	}
	for key, a := range p.answers {
		if path := pathOf(root, key); a.onDisk && found[path] != a.size {
			t.Errorf("%s has %d bytes, want %d", path, found[path], a.size)
		}
	}
	for path := range found {
		if strings.Contains(path, "secret") {
			t.Errorf("%s tells its target", path)
		}
	}
}

func TestFilesDoNotCompressAndDiffer(t *testing.T) {
	root := filepath.Join(t.TempDir(), "origin")
	p := smallPlan()
	if err := prepare(t, p, root, nil); err != nil {
		t.Fatal(err)
	}
	long, err := os.ReadFile(pathOf(root, hash("/long")))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression)
	w.Write(long)
	w.Close()
	if packed.Len() < len(long) {
		t.Errorf("%d bytes were compressed to %d", len(long), packed.Len())
	}
	other, err := os.ReadFile(pathOf(root, hash("/secret-token-4")))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(other[:500], long[:500]) {
		t.Error("two files begin with the same bytes")
	}
}

func TestPrepareAgain(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(root string, p *Catalog) error
		writes bool // whether the second run writes what was taken away
	}{
		{"the same log is instant: not even the files are looked at", func(root string, p *Catalog) error {
			return os.Remove(pathOf(root, hash("/long")))
		}, false},
		{"a run that was cut off goes on where it was", func(root string, p *Catalog) error {
			return errors.Join(os.Truncate(pathOf(root, hash("/long")), 5), os.WriteFile(filepath.Join(root, markerName), []byte(`{"format":1}`), 0o644))
		}, true},
		{"a marker that was cut short is made again", func(root string, p *Catalog) error {
			return errors.Join(os.Remove(pathOf(root, hash("/long"))), os.WriteFile(filepath.Join(root, markerName), []byte("{"), 0o644))
		}, true},
		{"another log adds its files", func(root string, p *Catalog) error {
			p.Add([]byte("/new"), "GET", 200, 33)
			return os.Remove(pathOf(root, hash("/long")))
		}, true},
	} {
		root := filepath.Join(t.TempDir(), "origin")
		p := smallPlan()
		if err := prepare(t, p, root, nil); err != nil {
			t.Fatal(err)
		}
		kept := pathOf(root, hash("/secret-token-0"))
		if err := errors.Join(os.WriteFile(kept, make([]byte, 1000), 0o644), c.change(root, p)); err != nil {
			t.Fatal(err)
		}
		if err := prepare(t, p, root, nil); err != nil {
			t.Fatalf("%s: %v", c.why, err)
		}
		if got := sizes(t, root)[pathOf(root, hash("/long"))] == chunkBytes+17; got != c.writes {
			t.Errorf("%s: written again is %v", c.why, got)
		}
		if content, _ := os.ReadFile(kept); !bytes.Equal(content, make([]byte, 1000)) {
			t.Errorf("%s: a file of the right size was written again", c.why)
		}
	}
}

func TestPrepareRefuses(t *testing.T) {
	foreign := t.TempDir()
	plain := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(filepath.Join(foreign, "thesis.tex"), []byte("x"), 0o644), os.WriteFile(plain, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	huge := NewCatalog(Limits{Targets: 10, Bytes: 1 << 62})
	huge.Add([]byte("/x"), "GET", 200, 1<<60)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		why  string
		ctx  context.Context
		plan *Catalog
		root string
		is   error
		says string
	}{
		{"a folder with something else in it", context.Background(), smallPlan(), foreign, ErrForeign, "choose an empty one with --root"},
		{"a file in place of a folder", context.Background(), smallPlan(), plain, nil, "choose another --root"},
		{"a disk that is too small", context.Background(), huge, t.TempDir(), ErrNoSpace, "--max-bytes"},
		{"a user who changed his mind", cancelled, smallPlan(), t.TempDir(), context.Canceled, ""},
	} {
		folder, err := OpenFolder(c.root)
		if err == nil {
			err = c.plan.Prepare(c.ctx, folder, nil)
		}
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if got := sizes(t, foreign); len(got) != 1 {
		t.Errorf("the folder that is not ours now holds %v", got)
	}
}

// onePlan has one file, of 1,000 bytes, at /x.
func onePlan() *Catalog {
	p := NewCatalog(plenty)
	p.Add([]byte("/x"), "GET", 200, 1000)
	return p
}

// elsewhere is a folder with a file of somebody else's, whose text must never change and never be served.
func elsewhere(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, fileName(hash("/x"))[3:])
	if err := os.WriteFile(file, []byte("thesis"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func TestNothingOutsideOfTheFolderIsTouched(t *testing.T) {
	name := fileName(hash("/x"))
	for _, c := range []struct {
		why   string
		place func(root, dir, file string) error
		is    error // nil where the origin goes on
	}{
		{"a link in place of a file", func(root, _, file string) error { return os.Symlink(file, filepath.Join(root, name)) }, ErrStray},
		{"a link that leads nowhere yet", func(root, dir, _ string) error { return os.Symlink(dir+"/new", filepath.Join(root, name)) }, ErrStray},
		{"a link in place of a folder", func(root, dir, _ string) error {
			return errors.Join(os.Remove(filepath.Join(root, name[:2])), os.Symlink(dir, filepath.Join(root, name[:2])))
		}, ErrStray},
		{"a pipe", func(root, _, _ string) error { return syscall.Mkfifo(filepath.Join(root, name), 0o644) }, ErrStray},
		{"a folder in place of a file", func(root, _, _ string) error { return os.Mkdir(filepath.Join(root, name), 0o755) }, ErrStray},
		{"another name of a file elsewhere", func(root, _, file string) error { return os.Link(file, filepath.Join(root, name)) }, nil},
		{"a marker that is being written is a link", func(root, _, file string) error {
			return os.Symlink(file, filepath.Join(root, markerName+".new"))
		}, ErrStray},
		{"the marker is a pipe", func(root, _, _ string) error {
			return errors.Join(os.Remove(filepath.Join(root, markerName)), syscall.Mkfifo(filepath.Join(root, markerName), 0o644))
		}, ErrStray},
	} {
		dir, file := elsewhere(t)
		root := t.TempDir()
		err := errors.Join(prepare(t, NewCatalog(plenty), root, nil), os.Mkdir(filepath.Join(root, name[:2]), 0o755))
		if err = errors.Join(err, c.place(root, dir, file)); err != nil {
			t.Fatal(err)
		}
		err = prepare(t, onePlan(), root, nil)
		if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), "choose another folder with --root") {
			t.Errorf("%s: %v", c.why, err)
		}
		if text, _ := os.ReadFile(file); string(text) != "thesis" {
			t.Errorf("%s: a file elsewhere now has %d bytes", c.why, len(text))
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: the folder elsewhere now has %v", c.why, entries)
		}
	}
}

func TestNothingOutsideOfTheFolderIsServed(t *testing.T) {
	for _, c := range []struct {
		why   string
		place func(path, file string) error
	}{
		{"a link", func(path, file string) error { return os.Symlink(file, path) }},
		{"a link that climbs", func(path, file string) error {
			up, err := filepath.Rel(filepath.Dir(path), file)
			return errors.Join(err, os.Symlink(up, path))
		}},
		{"a pipe that nobody writes to", func(path, _ string) error { return syscall.Mkfifo(path, 0o644) }},
		{"a link in the middle of the path", func(path, file string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.Symlink(filepath.Dir(file), filepath.Dir(path)))
		}},
	} {
		_, file := elsewhere(t)
		root := t.TempDir()
		p := onePlan()
		path := pathOf(root, hash("/x"))
		folder, err := OpenFolder(root)
		if err == nil {
			err = errors.Join(p.Prepare(context.Background(), folder, nil), os.Remove(path), c.place(path, file))
		}
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		p.Handler(folder).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/x", nil))
		if body, _ := io.ReadAll(answer.Body); answer.Code != http.StatusInternalServerError || strings.Contains(string(body), "thesis") {
			t.Errorf("%s: %d %q", c.why, answer.Code, body)
		}
		folder.Close()
	}
}

func TestTheFolderMayBeALink(t *testing.T) {
	root := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), root); err != nil {
		t.Fatal(err)
	}
	if err := prepare(t, onePlan(), root, nil); err != nil {
		t.Fatal(err)
	}
	if found := sizes(t, root+"/"); found[pathOf(root, hash("/x"))] != 1000 {
		t.Errorf("found %v", found)
	}
}
