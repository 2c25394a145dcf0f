package database

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LossError is that sends are known to have been recorded after the backup: the operator has to
// say that they are given up.
type LossError struct {
	Dir      string
	From, To time.Time // between them sends were recorded that the backup does not have
	Other    bool      // it is a backup of another store than the one that was there
}

func (e *LossError) Error() string {
	from, to := e.From.UTC().Format(time.RFC3339), e.To.UTC().Format(time.RFC3339)
	if e.Other {
		return fmt.Sprintf("the backup of %s belongs to another store than the store in %s, last used at %s: the "+
			"sends of that store would be lost", from, e.Dir, to)
	}
	return fmt.Sprintf("the backup was made at %s, but the store in %s was used at least until %s: sends in between "+
		"would be lost", from, e.Dir, to)
}

// Restore puts an archive back into a directory, which must be empty or absent, as of now. What it
// refuses leaves all as it was; what is given up midway is no store, and says so at a start.
func Restore(archive io.ReadSeeker, dir string, acceptLoss bool, now time.Time) (*Manifest, error) {
	dir = filepath.Clean(dir)
	m, err := Verify(archive)
	if err != nil {
		return nil, err
	}
	if err := checkStopped(dir); err != nil {
		return m, err
	}
	if err := checkLoss(m, dir, acceptLoss); err != nil {
		return m, err
	}
	if err := checkEmpty(dir); err != nil {
		return m, err
	}
	lock, err := lock(vfs.Default, dir)
	if err != nil {
		return m, err
	}
	err = Extract(archive, m, dir)
	if err == nil {
		err = adopt(Copy{Dir: dir, ID: m.Store, Mark: m.Mark, At: m.At}, now)
	}
	if err != nil {
		err = errors.Join(err, empty(dir))
	}
	return m, errors.Join(err, lock.Close())
}

// checkStopped demands that no service has the directory open. Where that cannot be found out, the lock tells.
func checkStopped(dir string) error {
	if process, err := Holder(dir); err == nil && process > 0 {
		return fmt.Errorf("process %d has %s open: stop the service first", process, dir)
	}
	return nil
}

// checkLoss demands that nothing is known of sends after the backup, or that they are given up.
func checkLoss(m *Manifest, dir string, accept bool) error {
	known, err := known(dir)
	if err != nil {
		return err
	}
	other := known.ID != m.Store
	if accept || known.ID == "" || !other && known.Mark <= m.Mark {
		return nil
	}
	return &LossError{dir, m.At, known.At, other}
}

// lockFile is all that the directory of a store may have that is put back: who has it open is
// found out by it.
const lockFile = "LOCK"

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.Name() != lockFile {
			return fmt.Errorf("directory %s is not empty, it contains %s: move its content away first",
				dir, entry.Name())
		}
	}
	return err
}

// empty removes what was put into the directory, which was empty.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != lockFile {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
