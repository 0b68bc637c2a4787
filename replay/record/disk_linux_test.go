package record

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFullTmpfs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small disk takes root")
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)

	dir := filepath.Join(disk, "run")
	d, err := Create(dir, Run{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Start(time.Now())
	for i := range 20_000 { // 1.4 MB
		d.Add(&Record{Line: uint64(i), TotalUS: 1})
	}
	if _, err := d.Close(Complete, ""); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want that of a full disk", err)
	}
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Len() == 0 || r.Len() != shownShape(t, dir) {
		t.Errorf("%d records are whole, the header shows %d", r.Len(), shownShape(t, dir))
	}
	if r.Run.Status != Failed || r.Summary == nil {
		t.Errorf("run.json says %v, summary %v: the reserve was for them", r.Run.Status, r.Summary)
	}
}

func TestNoPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere")
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(locked, 0o755)
	if _, err := Create(filepath.Join(locked, "run"), Run{}, Options{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}
