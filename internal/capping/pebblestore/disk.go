package pebblestore

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
// state that no recover survives. It never sees such an error: disk reports it
// and freezes, which to the files is a power cut. From then on nothing is
// changed any more, and Pebble is told that all went well, so that it can go on
// reading and be closed; the store answers nobody with it.
//
// Tables are different. Pebble tries again when one cannot be written, so it
// gets the error, after a pause, as it makes none.
type disk struct {
	vfs.FS
	notes   *fileNotes
	refused func(error) // is told, before Pebble is, what the file system refused
	serving atomic.Bool // not while the database is being opened: it then ends by itself
	// hopeless: a table could not be written while the database was being opened.
	hopeless atomic.Bool
	quit     chan struct{} // closed: pauses end
	gate     sync.RWMutex  // held for reading by whoever changes something
	frozen   bool
	void     vfs.FS // has the files that are created on a frozen disk
}

func newDisk(fs vfs.FS, dir string, refused func(error)) *disk {
	return &disk{FS: fs, notes: &fileNotes{fs: fs, dir: dir}, refused: refused, quit: make(chan struct{}), void: vfs.NewMem()}
}

var errFrozen = errors.New("the store is out of service and writes nothing any more")

// retryPause is how long a table that cannot be written is left alone.
const retryPause = time.Second

// freeze lets nothing be changed any more, and returns when nothing is being
// changed any more.
func (d *disk) freeze() {
	d.gate.Lock()
	defer d.gate.Unlock()
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
	case frozen && (!serving || isTable(name)):
		d.pause()
		return errFrozen
	case frozen:
		return nil
	case !serving && isTable(name):
		d.hopeless.Store(true)
		return err // Pebble removes what it has, and reports it
	case !serving:
		d.refused(err)
		return err
	case isTable(name):
		d.pause()
		return err
	}
	d.refused(err)
	d.freeze()
	return nil
}

func isTable(name string) bool {
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
	if isTable(name) && d.hopeless.Load() && !d.serving.Load() {
		d.pause() // it is Pebble's next attempt, and nobody waits for it
		return nil, errFrozen
	}
	var file vfs.File
	err := d.write(name, func() error {
		opened, err := open()
		if err == nil {
			file = opened
			err = d.notes.add(name)
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

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	return d.create(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, options...) })
}

func (d *disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(to, func() (vfs.File, error) {
		if err := d.notes.remove(from); err != nil {
			return nil, err
		}
		return d.FS.ReuseForWrite(from, to, category)
	})
}

// OpenDir is a directory, which can be synced.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	file, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: file, disk: d, name: name}, nil
}

func (d *disk) Link(from, to string) error {
	return d.write(to, func() error { return d.FS.Link(from, to) })
}

func (d *disk) Rename(from, to string) error {
	return d.write(to, func() error { return d.FS.Rename(from, to) })
}

func (d *disk) MkdirAll(dir string, mode os.FileMode) error {
	return d.write(dir, func() error { return d.FS.MkdirAll(dir, mode) })
}

func (d *disk) Remove(name string) error {
	_, err := d.change(func() error {
		if err := d.notes.remove(name); err != nil {
			return err
		}
		return d.FS.Remove(name)
	})
	return err
}

func (d *disk) RemoveAll(name string) error {
	_, err := d.change(func() error { return d.FS.RemoveAll(name) })
	return err
}

// Lock is no lock: the store holds the directory's, for longer than a broken
// database would.
func (d *disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (d *disk) Unwrap() vfs.FS { return d.FS }

// diskFile is a file or directory of a disk.
type diskFile struct {
	vfs.File
	disk *disk
	name string
}

func (f *diskFile) Write(p []byte) (n int, err error) {
	return f.written(p, func() (err error) { n, err = f.File.Write(p); return err }, &n)
}

func (f *diskFile) WriteAt(p []byte, offset int64) (n int, err error) {
	return f.written(p, func() (err error) { n, err = f.File.WriteAt(p, offset); return err }, &n)
}

func (f *diskFile) written(p []byte, op func() error, n *int) (int, error) {
	if err := f.disk.write(f.name, op); err != nil {
		return *n, err
	}
	return len(p), nil
}

func (f *diskFile) Sync() error { return f.disk.write(f.name, f.File.Sync) }

func (f *diskFile) SyncData() error { return f.disk.write(f.name, f.File.SyncData) }

func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.disk.write(f.name, func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

func (f *diskFile) Preallocate(offset, length int64) error {
	_, err := f.disk.change(func() error { return f.File.Preallocate(offset, length) })
	return err
}

// Close closes the file, also on a frozen disk.
func (f *diskFile) Close() error {
	err := f.File.Close()
	if err == nil {
		return nil
	}
	return f.disk.write(f.name, func() error { return err })
}
