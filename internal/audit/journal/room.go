package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"capper/internal/audit"
	"capper/internal/objects"
)

// A room is the spool directory of one service instance, together with its lock file. While a process holds the lock of
// a spool directory, no other process may change the files in this directory.
//
//	lock                 the lock file
//	<n>.audit            a records file, open or waiting for upload
//	<n>.audit.damaged    a damaged records file, kept for a manual inspection
//	<version>.yaml       a policy that waits for upload
//	<n>.erasure          an erasure that waits for upload
type room struct {
	dir      string
	instance string
	lock     *os.File // nil: not locked
}

const (
	policyExtension  = ".yaml"
	erasureExtension = ".erasure"
	damagedExtension = ".damaged"
)

// errTaken reports that another process holds the lock of the spool directory.
var errTaken = errors.New("another process uses the local directory of the audit")

// The method enter locks the spool directory. If the argument "create" is true, the method creates the directory first.
func (r *room) enter(create bool) error {
	if r.lock != nil {
		return nil
	}
	for {
		if create {
			if err := os.MkdirAll(r.dir, 0o755); err != nil {
				return err
			}
		}
		lock, err := r.tryLock(create)
		if create && errors.Is(err, fs.ErrNotExist) {
			continue // another process recovered the directory because it was empty
		}
		r.lock = lock
		return err
	}
}

func (r *room) tryLock(create bool) (*os.File, error) {
	name, mode := filepath.Join(r.dir, audit.LockName), os.O_RDWR
	if create {
		mode |= os.O_CREATE
	}
	lock, err := os.OpenFile(name, mode, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, err
	}
	held, err := lock.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(name); err == nil && !os.SameFile(held, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// The method leave unlocks the spool directory, and removes a directory that has no files besides the lock file.
func (r *room) leave() {
	if r.lock == nil {
		return
	}
	if entries, err := os.ReadDir(r.dir); err == nil && len(entries) == 1 {
		_ = os.Remove(filepath.Join(r.dir, audit.LockName))
		_ = os.Remove(r.dir)
	}
	_ = r.lock.Close()
	r.lock = nil
}

// The method "names" lists the files of the spool directory whose names have the given extension.
func (r *room) names(extension string) (names []string, err error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), extension) && !strings.HasPrefix(e.Name(), objects.TempPrefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (r *room) path(name string) string { return filepath.Join(r.dir, name) }

// fileName returns the name of the audit file with the number n in the spool directory.
func fileName(n uint64) string { return fmt.Sprintf("%d%s", n, audit.FileExtension) }

// The method store writes a file to the spool directory atomically: after a crash, the file is complete or does not
// exist.
func (r *room) store(name string, body []byte) error {
	f, err := os.CreateTemp(r.dir, objects.TempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // has no effect after the rename
	_, err = f.Write(body)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), r.path(name)); err != nil {
		return err
	}
	return syncDirectory(r.dir)
}

func syncDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
