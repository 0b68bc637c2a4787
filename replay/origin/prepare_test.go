package origin

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
