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

// A LossError is the error of a restore that would lose the sends that the store recorded after the backup. An operator
// must accept the loss of these sends.
type LossError struct {
	Dir      string
	From, To time.Time // sends between these times are not in the backup
	Other    bool      // the backup is of another store than the store in the directory
}

func (e *LossError) Error() string {
	from, to := e.From.UTC().Format(time.RFC3339), e.To.UTC().Format(time.RFC3339)
	if e.Other {
		return fmt.Sprintf("the backup of %s belongs to another store than the store in %s, last used at %s: the "+
			"sends and changes of sets of that store would be lost", from, e.Dir, to)
	}
	return fmt.Sprintf("the backup was made at %s, but the store in %s was used at least until %s: sends and "+
		"changes of sets in between would be lost", from, e.Dir, to)
}

// The function Restore restores a backup archive into a directory, which must be empty or missing. The argument "now"
// of Restore is the time of the restore. If Restore rejects the archive, the directory stays unchanged. After an
// interrupted restore, the directory has no valid store, and the next start of capper reports this.
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
		err = adopt(Copy{Dir: dir, ID: m.Store, Mark: m.Mark, At: m.At, IDs: m.IDs.value()}, now)
	}
	if err != nil {
		err = errors.Join(err, empty(dir))
	}
	return m, errors.Join(err, lock.Close())
}

// checkStopped returns an error if a service has the directory open. Some operating systems do not report the process
// that holds a lock. On systems that do not report the holder of a lock, the restore notices a running service only
// when it takes the lock.
func checkStopped(dir string) error {
	if process, err := Holder(dir); err == nil && process > 0 {
		return fmt.Errorf("process %d has %s open: stop the service first", process, dir)
	}
	return nil
}

// checkLoss returns an error if the restore would lose sends that the store recorded after the backup. If the operator
// accepts the loss, checkLoss returns nil.
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

// lockFile is the only file that may be in a directory before a restore. The lock on this file shows whether a process
// has the directory open.
const lockFile = "LOCK"

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.Name() != lockFile {
			return fmt.Errorf("directory %s must be empty, but contains %s: move its content away first",
				dir, entry.Name())
		}
	}
	return err
}

// The function "empty" removes the files that a failed restore wrote to the directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != lockFile {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
