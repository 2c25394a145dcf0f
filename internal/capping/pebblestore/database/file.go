package database

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// replaceFile replaces the content of a file durably, or leaves the old file unchanged.
func replaceFile(fs vfs.FS, name string, content []byte) error {
	temporary := name + ".new"
	file, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, fs.Remove(temporary))
	}
	if err := fs.Rename(temporary, name); err != nil {
		return err
	}
	dir, err := fs.OpenDir(fs.PathDir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readFile returns the content of a small file.
func readFile(fs vfs.FS, name string) ([]byte, error) {
	file, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return content, errors.Join(err, file.Close())
}

// ProbeSize is the number of bytes that Open must be able to write.
const ProbeSize = 4 << 20

// The function "probe" writes a file and removes the file again, to detect a full disk. Pebble itself does not report a
// full disk while it opens a database. The function "probe" returns the modification time of the written file, by the
// file system's clock.
func probe(fs vfs.FS, dir string) (at time.Time, err error) {
	name := fs.PathJoin(dir, "space.probe")
	content := make([]byte, ProbeSize)
	random := rand.NewPCG(rand.Uint64(), rand.Uint64()) // takes a fraction of the time of a secure generator
	for at := 0; at < ProbeSize; at += 8 {
		binary.NativeEndian.PutUint64(content[at:], random.Uint64()) // no file system can compress random bytes
	}
	file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = file.Write(content)
		if err == nil {
			err = file.Sync()
		}
		if err == nil {
			at, err = fileTime(fs, name)
		}
		err = errors.Join(err, file.Close(), fs.Remove(name))
	}
	if err != nil {
		return at, fmt.Errorf("the disk is full: the store needs at least %d MiB of free space: %w",
			ProbeSize>>20, err)
	}
	return at, nil
}

// fileTime returns the modification time of a file by the clock of the file system.
func fileTime(fs vfs.FS, name string) (time.Time, error) {
	info, err := fs.Stat(name)
	if err != nil {
		return time.Time{}, err
	}
	if info.ModTime().IsZero() {
		return time.Time{}, errors.New("the file system must report modification times of files")
	}
	return info.ModTime(), nil
}
