package database

import "github.com/cockroachdb/pebble/v2/vfs"

// diskFile is an open file or directory of a disk, the file system that handles refused writes.
type diskFile struct {
	vfs.File
	disk *disk
	name string
}

// The method Write appends p to the file.
func (f *diskFile) Write(p []byte) (n int, err error) {
	return f.written(p, func() (err error) { n, err = f.File.Write(p); return err }, &n)
}

// WriteAt writes p to the file at an offset.
func (f *diskFile) WriteAt(p []byte, offset int64) (n int, err error) {
	return f.written(p, func() (err error) { n, err = f.File.WriteAt(p, offset); return err }, &n)
}

func (f *diskFile) written(p []byte, op func() error, n *int) (int, error) {
	if err := f.disk.write(f.name, op); err != nil {
		return *n, err
	}
	return len(p), nil
}

// The method Sync makes the file durable.
func (f *diskFile) Sync() error { return f.disk.write(f.name, f.File.Sync) }

// SyncData makes the file's content durable.
func (f *diskFile) SyncData() error { return f.disk.write(f.name, f.File.SyncData) }

// SyncTo starts a sync of the file's content up to the given length in bytes.
func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.disk.write(f.name, func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Preallocate reserves disk space for the file. An error of Preallocate does no harm.
func (f *diskFile) Preallocate(offset, length int64) error {
	_, err := f.disk.change(func() error { return f.File.Preallocate(offset, length) })
	return err
}

// The method Close closes the file, even on a frozen disk.
func (f *diskFile) Close() error {
	err := f.File.Close()
	if err == nil {
		f.disk.begun.end(f.name)
		return nil
	}
	return f.disk.write(f.name, func() error { return err })
}
