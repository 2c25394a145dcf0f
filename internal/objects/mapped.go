package objects

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The method Map maps the whole file of an object into memory (mmap), without reading it. The mapped memory stays valid
// until the caller calls unmap, even if another process replaces or deletes the object. If a program writes to the
// mapped file, the memory changes too. The method Map therefore removes the write permission of the file if possible.
// If the object does not exist, Map returns ErrNotFound. If the object is not a regular file of exactly sizeBytes
// bytes, Map also returns an error. The argument sizeBytes must be at least 1.
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
		return nil, fmt.Errorf("map file %s into memory: the file must be a regular file", path)
	case stat.Size() != sizeBytes || sizeBytes < 1:
		return nil, fmt.Errorf("map file %s into memory: the file has %d bytes, but must have %d",
			path, stat.Size(), sizeBytes)
	}
	_ = f.Chmod(0o444) // fails on a read-only file system and on another user's file
	raw, err := syscall.Mmap(int(f.Fd()), 0, int(sizeBytes), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return raw, nil
}

// Unload removes the pages of a mapped file from the memory of the process. When the process uses an unloaded page
// again, the operating system reads the page from the page cache or the disk. The argument of Unload must be memory
// that Map returned, because other memory would lose its content.
func Unload(raw []byte) { _ = unix.Madvise(raw, unix.MADV_DONTNEED) }
