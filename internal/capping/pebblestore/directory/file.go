package directory

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReplaceFile writes a file whole and durably, or leaves it as it was.
func ReplaceFile(fs vfs.FS, name string, content []byte) error {
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

// ReadFile is the content of a small file.
func ReadFile(fs vfs.FS, name string) ([]byte, error) {
	file, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return content, errors.Join(err, file.Close())
}
