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

// disk stands between Pebble and the file system. Pebble panics when its
// write-ahead log or manifest cannot be written, some of it with a mutex in a
// state that no recover survives. It never sees such an error: Disk reports it
// and freezes, which to the files is a power cut. From then on nothing is
// changed any more, and Pebble is told that all went well, so that it can go on
// reading and be closed; the store answers nobody with it.
//
// Tables are different. Pebble tries again when one cannot be written, so it
// gets the error, after a pause, as it makes none.
//
// The folder of a copy that is made for a backup is different as well: what is
// refused there fails the copy, and nothing else.
type disk struct {
	vfs.FS
	Notes   *notes
	copied  string      // the folder of a copy, see CopyFolder
	refused func(error) // is told, before Pebble is, what the file system refused
	serving atomic.Bool // not while the database is being opened: it then ends by itself
	// tableRefused: a table could not be written while the database was being opened.
	tableRefused atomic.Bool
	begun        begun
	quit         chan struct{} // closed: pauses end
	gate         sync.RWMutex  // held for reading by whoever changes something
	frozen       bool
	void         vfs.FS // has the files that are created on a frozen disk
}

// New is the disk of a directory that is being opened. refused is called before
// Pebble learns of a refused write.
func New(fs vfs.FS, dir string, refused func(error)) *disk {
	return &disk{
		FS: fs, Notes: &notes{fs: fs, dir: dir}, copied: CopyFolder(fs, dir), refused: refused,
		quit: make(chan struct{}), void: vfs.NewMem(),
	}
}

// Serve says that the database is open: from now on it never sees a refused write.
func (d *disk) Serve() { d.serving.Store(true) }

// Serving reports whether the database is open.
func (d *disk) Serving() bool { return d.serving.Load() }

// TableRefused reports whether a table could not be written while the database
// was being opened, which Pebble would try again without end.
func (d *disk) TableRefused() bool { return d.tableRefused.Load() }

// EndPauses lets nothing wait any more before it is tried again.
func (d *disk) EndPauses() { close(d.quit) }

var errFrozen = errors.New("the store is out of service and rejects writes")

// retryPause is how long a table that cannot be written is left alone.
const retryPause = time.Second

// Freeze lets nothing be changed any more, and returns when nothing is being
// changed any more. Of an opening that failed it leaves no half-written table: the
// next one may need the space.
func (d *disk) Freeze() {
	d.gate.Lock()
	defer d.gate.Unlock()
	if !d.frozen && !d.serving.Load() {
		d.begun.remove(d.FS)
	}
	d.frozen = true
}

// change does what may fail without harm, unless the disk is frozen.
func (d *disk) change(op func() error) (frozen bool, err error) {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.frozen {
		return true, nil
	}
	return false, op()
}

// write does what must not fail. Nothing that follows from its success in
// Pebble reaches a disk that has refused it.
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
		return err // Pebble removes what it has, and reports it
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

// IsTable reports whether the file is one of those that Pebble writes again when
// it could not be written.
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

// create is a file that is opened for writing.
func (d *disk) create(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if IsTable(name) && d.tableRefused.Load() && !d.serving.Load() {
		d.pause() // it is Pebble's next attempt, and nobody waits for it
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

// Create is a file that is made, and noted when it is one of those.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.isCopy(name) {
		if IsTable(name) { // Pebble would copy what it cannot link, as much as there is
			return nil, errNoLinks
		}
		return d.FS.Create(name, category)
	}
	return d.create(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite is a file that is opened for writing, and noted like one that is made.
func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	return d.create(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, options...) })
}

// ReuseForWrite is a file that takes the place of another one.
func (d *disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(to, func() (vfs.File, error) {
		if err := d.Notes.remove(from); err != nil {
			return nil, err
		}
		return d.FS.ReuseForWrite(from, to, category)
	})
}

// OpenDir is a directory, which can be synced.
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

// Link makes a second name of a file.
func (d *disk) Link(from, to string) error {
	if d.isCopy(to) {
		return d.FS.Link(from, to)
	}
	return d.write(to, func() error { return d.FS.Link(from, to) })
}

// Rename renames a file.
func (d *disk) Rename(from, to string) error {
	if d.isCopy(to) {
		return d.FS.Rename(from, to)
	}
	return d.write(to, func() error { return d.FS.Rename(from, to) })
}

// MkdirAll makes a directory and those above it.
func (d *disk) MkdirAll(dir string, mode os.FileMode) error {
	if d.isCopy(dir) {
		return d.FS.MkdirAll(dir, mode)
	}
	return d.write(dir, func() error { return d.FS.MkdirAll(dir, mode) })
}

// Remove removes a file; that it is refused does no harm.
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

// RemoveAll removes a directory; that it is refused does no harm.
func (d *disk) RemoveAll(name string) error {
	if d.isCopy(name) {
		return d.FS.RemoveAll(name)
	}
	_, err := d.change(func() error { return d.FS.RemoveAll(name) })
	return err
}

// Lock is no lock: the store holds the directory's, for longer than a broken
// database would.
func (d *disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap is the file system below.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// CopyFolder is where a database's copy is made for a backup: in its own directory, so that
// tables are in both by a link, and take no room twice.
func CopyFolder(fs vfs.FS, dir string) string { return fs.PathJoin(dir, "BACKUP") }

var errNoLinks = errors.New("the file system of the store has no hard links, so a copy would need as much space as " +
	"the store: stop the service and copy the directory, or move the store to a file system with hard links")

// isCopy reports whether the file is one of the copy.
func (d *disk) isCopy(name string) bool {
	return name == d.copied || strings.HasPrefix(name, d.copied) && strings.HasPrefix(name[len(d.copied):], "/")
}

// copyDir is the folder of a copy. Nobody needs it after a crash, and Pebble panics where the
// folder cannot be synced.
type copyDir struct{ vfs.File }

// Sync does nothing.
func (copyDir) Sync() error { return nil }
