package database

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The function "lock" takes the lock of the store's directory, and first creates a missing directory. The operating
// system releases the lock when the process ends, even after a crash.
func lock(fs vfs.FS, dir string) (io.Closer, error) {
	if dir == "" {
		return nil, errors.New("path: must not be empty")
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := fs.Lock(fs.PathJoin(dir, "LOCK"))
	if err == nil {
		return lock, nil
	}
	return nil, explainLock(err)
}

// If another process holds the lock of the directory, explainLock replaces the error by a clear error. For a lock of
// another process, operating systems use two different error numbers. If this process may not open the lock file,
// explainLock returns the argument err unchanged.
func explainLock(err error) error {
	if opening := (*iofs.PathError)(nil); errors.As(err, &opening) {
		return err
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		err.Error() == "lock held by current process" {
		return fmt.Errorf("another capper process has the store open (%w): "+
			"stop that process, or configure another path", err)
	}
	return err
}

// Holder returns the id of the process that holds the lock of the directory, or 0. The function Holder does not take
// the lock, so that a service can start at the same time. The function Holder cannot detect a lock of its own process.
func Holder(dir string) (process int, err error) {
	file, err := os.Open(filepath.Join(dir, "LOCK"))
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, err
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}
