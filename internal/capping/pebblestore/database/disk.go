package database

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The type "disk" handles refused writes: a disk is a file system between Pebble and the real file system. If Pebble
// cannot write its write-ahead log or its manifest, Pebble panics. Some of Pebble's panics leave a mutex of Pebble
// locked, and recover does not unlock the mutex. The disk hides errors of the write-ahead log and the manifest from
// Pebble: the disk reports such an error to the store, and freezes. A frozen disk changes nothing in the directory, as
// after a power cut. On a frozen disk, all writes of Pebble seem to succeed, and Pebble can still read and close. The
// store confirms no call whose write only seemed to succeed.
//
// If a write of a table file is refused, the disk returns the error to Pebble. The disk first waits a second, because
// Pebble retries without a pause.
//
// If the file system refuses a write in the folder of a backup copy, only the copy fails.
type disk struct {
	vfs.FS
	Notes   *notes
	copied  string      // the folder of a backup copy, see CopyFolder
	refused func(error) // called with the file system's error before the write returns to Pebble
	serving atomic.Bool // false while the database is being opened, because an error then ends the opening
	// tableRefused is true after a refused write of a table while the database was being opened.
	tableRefused atomic.Bool
	begun        begun
	quit         chan struct{} // closed to end pauses
	gate         sync.RWMutex  // every change holds this lock for reading
	frozen       bool
	void         vfs.FS // holds the files that Pebble creates on a frozen disk
}

// New returns the disk of a directory whose database is being opened. If the file system refuses a write to a file that
// is not a table, the disk first calls the function "refused". Pebble gets the result of the write only after the call
// of "refused".
func New(fs vfs.FS, dir string, refused func(error)) *disk {
	return &disk{
		FS: fs, Notes: &notes{fs: fs, dir: dir}, copied: CopyFolder(fs, dir), refused: refused,
		quit: make(chan struct{}), void: vfs.NewMem(),
	}
}

// Serve records that the database is open. After Serve, the disk hides refused writes of the write-ahead log and of the
// manifest from Pebble.
func (d *disk) Serve() { d.serving.Store(true) }

// The method Serving reports whether the database is open.
func (d *disk) Serving() bool { return d.serving.Load() }

// TableRefused reports whether the file system refused to write a table while the database was being opened. Pebble
// would retry the write of a refused table without end.
func (d *disk) TableRefused() bool { return d.tableRefused.Load() }

// EndPauses ends the pauses that delay the errors of refused table writes.
func (d *disk) EndPauses() { close(d.quit) }

var errFrozen = errors.New("the embedded store is out of service and rejects writes")

// retryPause is the time for which the disk waits before it returns the error of a refused table write to Pebble.
const retryPause = time.Second

// The method Freeze prevents all further changes of the database's files, and waits for changes in progress. If the
// database was not opened, Freeze removes unfinished tables, because the next attempt to open may need the space.
func (d *disk) Freeze() {
	d.gate.Lock()
	defer d.gate.Unlock()
	if !d.frozen && !d.serving.Load() {
		d.begun.remove(d.FS)
	}
	d.frozen = true
}

// If the disk is not frozen, the method "change" runs an operation on the files. The method "change" is only for
// operations whose failure does no harm.
func (d *disk) change(op func() error) (frozen bool, err error) {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.frozen {
		return true, nil
	}
	return false, op()
}

// The method "write" runs an operation on the files, such as a write to the write-ahead log. If the operation fails on
// an open database and the file is not a table, the disk freezes. After the freeze, no write of Pebble changes the
// directory.
func (d *disk) write(name string, op func() error) error {
	frozen, err := d.change(op)
	serving := d.serving.Load()
	switch {
	case !frozen && err == nil:
		return nil
	case frozen && (!serving || IsTable(name)):
		d.pause()
		return errFrozen
	case frozen:
		return nil
	case !serving && IsTable(name):
		d.begun.refuse(name)
		d.tableRefused.Store(true)
		return err // Pebble removes the partial file and reports the error
	case !serving:
		d.refused(err)
		return err
	case IsTable(name):
		d.pause()
		return err
	}
	d.refused(err)
	d.Freeze()
	return nil
}

// IsTable reports whether the file is a table or blob file, for which Pebble retries a failed write.
func IsTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

func (d *disk) pause() {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-d.quit:
	case <-timer.C:
	}
}

// The method "create" opens a file of the database for writing.
func (d *disk) create(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if IsTable(name) && d.tableRefused.Load() && !d.serving.Load() {
		d.pause() // this is Pebble's next attempt, and no caller waits for it
		return nil, errFrozen
	}
	var file vfs.File
	err := d.write(name, func() error {
		opened, err := open()
		if err == nil {
			file = opened
			err = d.Notes.add(name)
			if IsTable(name) && !d.serving.Load() {
				d.begun.add(name)
			}
		}
		return err
	})
	if err == nil && file == nil {
		file, err = d.void.Create(d.PathBase(name), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, err
	}
	return &diskFile{File: file, disk: d, name: name}, nil
}

// The method Create creates a file. The method Create adds the name of a write-ahead log or a manifest to the file
// FILES, the list of files that must exist.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.isCopy(name) {
		if IsTable(name) { // without this error, Pebble would copy tables that it cannot link, and need twice the space
			return nil, errNoLinks
		}
		return d.FS.Create(name, category)
	}
	return d.create(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite opens a file for writing. OpenReadWrite adds the name of a write-ahead log or a manifest to the file
// FILES, the list of files that must exist.
func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	return d.create(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, options...) })
}

// ReuseForWrite renames a file and opens it for writing.
func (d *disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(to, func() (vfs.File, error) {
		if err := d.Notes.remove(from); err != nil {
			return nil, err
		}
		return d.FS.ReuseForWrite(from, to, category)
	})
}

// OpenDir opens a directory, so that Pebble can sync it.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	file, err := d.FS.OpenDir(name)
	if err == nil && d.isCopy(name) {
		return copyDir{file}, nil
	}
	if err != nil {
		return nil, err
	}
	return &diskFile{File: file, disk: d, name: name}, nil
}

// The method Link creates a second name of a file (a hard link).
func (d *disk) Link(from, to string) error {
	if d.isCopy(to) {
		return d.FS.Link(from, to)
	}
	return d.write(to, func() error { return d.FS.Link(from, to) })
}

// The method Rename renames a file.
func (d *disk) Rename(from, to string) error {
	if d.isCopy(to) {
		return d.FS.Rename(from, to)
	}
	return d.write(to, func() error { return d.FS.Rename(from, to) })
}

// MkdirAll creates a directory and its parent directories.
func (d *disk) MkdirAll(dir string, mode os.FileMode) error {
	if d.isCopy(dir) {
		return d.FS.MkdirAll(dir, mode)
	}
	return d.write(dir, func() error { return d.FS.MkdirAll(dir, mode) })
}

// The method Remove removes a file. An error of Remove does no harm.
func (d *disk) Remove(name string) error {
	if d.isCopy(name) {
		return d.FS.Remove(name)
	}
	_, err := d.change(func() error {
		if err := d.Notes.remove(name); err != nil {
			return err
		}
		d.begun.forget(name)
		return d.FS.Remove(name)
	})
	return err
}

// RemoveAll removes a directory with all files in it. An error of RemoveAll does no harm.
func (d *disk) RemoveAll(name string) error {
	if d.isCopy(name) {
		return d.FS.RemoveAll(name)
	}
	_, err := d.change(func() error { return d.FS.RemoveAll(name) })
	return err
}

// Lock returns a lock that has no effect. The store itself holds the lock of the directory, because Pebble would
// release the lock too early after a fault.
func (d *disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap returns the real file system.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// CopyFolder returns the folder for a backup copy inside the database's directory. The folder is on the same file
// system as the database, so the copy can use hard links, and copied tables take no additional space.
func CopyFolder(fs vfs.FS, dir string) string { return fs.PathJoin(dir, "BACKUP") }

var errNoLinks = errors.New("the file system has no hard links, so a backup would need as much space as the store: " +
	"stop the service and copy the directory, or move the store to a file system with hard links")

// isCopy reports whether the file with the name belongs to a backup copy of the database.
func (d *disk) isCopy(name string) bool {
	return name == d.copied || strings.HasPrefix(name, d.copied) && strings.HasPrefix(name[len(d.copied):], "/")
}

// copyDir is the folder of a backup copy. Sync of a copyDir does nothing, because a copy is useless after a crash. If
// the sync of the folder returned an error, Pebble would panic.
type copyDir struct{ vfs.File }

// The method Sync does nothing.
func (copyDir) Sync() error { return nil }
