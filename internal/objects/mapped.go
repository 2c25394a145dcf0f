package objects

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Map maps a whole object into memory, without reading it. The memory stays valid until unmap is called, even if the
// object is replaced or deleted. A program that writes into the file changes the memory, so Map takes the right to
// write from the file, if it may. Map returns ErrNotFound if the object does not exist, and an error unless the object
// is a regular file of exactly sizeBytes bytes, at least one.
func (d *Directory) Map(ctx context.Context, key string, sizeBytes int64) (raw []byte, unmap func(), err error) {
	err = d.hung.do(ctx, d.path(key), func() error {
		mapped, err := mapFile(d.path(key), sizeBytes)
		raw = mapped
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return raw, func() { _ = syscall.Munmap(raw) }, nil
}

func mapFile(path string, sizeBytes int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, notFound(path, err)
	}
	defer f.Close()
	stat, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case stat.Mode()&fs.ModeType != 0:
		return nil, fmt.Errorf("map %s: must be a regular file", path)
	case stat.Size() != sizeBytes || sizeBytes < 1:
		return nil, fmt.Errorf("map %s: file has %d bytes and must have %d", path, stat.Size(), sizeBytes)
	}
	_ = f.Chmod(0o444) // not on a file system that is read-only, and not on another user's file
	raw, err := syscall.Mmap(int(f.Fd()), 0, int(sizeBytes), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return raw, nil
}

// Unload removes the pages of mapped memory from the memory of the process. They are read again, from the page cache or
// the disk, when they are used. The memory must come from Map: other memory would lose its content.
func Unload(raw []byte) { _ = unix.Madvise(raw, unix.MADV_DONTNEED) }
