package directory

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ProbeSize is what a store that opens must be able to write.
const ProbeSize = 4 << 20

// Probe writes a file and removes it: a database that finds no space while it
// is being opened does not say so. The file's time is that of the file system.
func Probe(fs vfs.FS, dir string) (at time.Time, err error) {
	name := fs.PathJoin(dir, "space.probe")
	content := make([]byte, ProbeSize)
	_, _ = rand.Read(content) // nothing that a file system could make small; it never fails
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
		return at, fmt.Errorf("no room to work, at least %d MiB must be free: %w", ProbeSize>>20, err)
	}
	return at, nil
}

// fileTime is when the file system says that a file was written.
func fileTime(fs vfs.FS, name string) (time.Time, error) {
	info, err := fs.Stat(name)
	if err != nil {
		return time.Time{}, err
	}
	if info.ModTime().IsZero() {
		return time.Time{}, errors.New("the file system tells no time")
	}
	return info.ModTime(), nil
}
