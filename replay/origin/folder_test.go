package origin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

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
