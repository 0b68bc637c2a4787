package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrGone says that the run directory was removed or replaced while the run wrote to it.
var ErrGone = errors.New("was removed or replaced while the run wrote to it: run this again, and leave that folder alone")

// gone returns ErrGone where the records go to a file that is no longer in the run directory: a write would not tell.
func (d *Dir) gone() error {
	found, err := os.Stat(d.flush.records.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !os.SameFile(found, d.flush.made):
		return fmt.Errorf("the run directory %s %w", d.path, ErrGone)
	}
	return nil
}
