package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
)

// File is a file being written, whole or not at all: beside its place under
// another name, which is its own once it is complete. Whoever reads the file
// sees the old one or the new one, also when the writer dies. One goroutine may
// use it.
//
// A pipe, a terminal or another device has nothing to replace and is written to
// as it is.
type File struct {
	file   *os.File
	target string // "" when it is written in place
}

var _ io.Writer = (*File)(nil)

// CheckTarget finds out before the work whether a file can be written there: its
// directory must exist, and it must not be one itself.
func CheckTarget(path string) error {
	if path == "" {
		return errors.New("the output file must not be empty")
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: its directory: %w", path, cmp.Or(err, fs.ErrNotExist))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s: must be a file, but is a directory", path)
	}
	return nil
}

// CreateFile begins a file; the directory must be there. Commit or Abort ends it.
// A symbolic link stays, and what it leads to is replaced. The rights are those
// of the file that is replaced, else the usual ones.
func CreateFile(path string) (*File, error) { return create(path, 0) }

// create is CreateFile with these rights whatever the umask and the old file say; 0: the usual ones.
func create(path string, rights fs.FileMode) (*File, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s: symbolic link points to a file that does not exist", path)
		}
		return begin(path, rights)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{file: file}, err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return begin(target, cmp.Or(rights, info.Mode().Perm()))
}

// begin creates the file beside its target. Rights of 0: the usual ones.
func begin(target string, rights fs.FileMode) (*File, error) {
	folder, base := filepath.Split(target)
	for {
		name := filepath.Join(folder, fmt.Sprintf(".%s.%08x.part", base, rand.Uint32()))
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, cmp.Or(rights, 0o666))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "create", Path: target, Err: errors.Unwrap(err)}
		}
		f := &File{file: file, target: target}
		if rights == 0 {
			return f, nil
		}
		if err := file.Chmod(rights); err != nil {
			f.Abort()
			return nil, err
		}
		return f, nil
	}
}

// part is the name of a file that is not committed.
var part = regexp.MustCompile(`^\..+\.[0-9a-f]{8}\.part$`)

// IsPart reports whether a name is that of a file that was never committed: a
// writer that was killed leaves one behind.
func IsPart(name string) bool { return part.MatchString(name) }

// Write appends to the file.
func (f *File) Write(p []byte) (int, error) { return f.file.Write(p) }

// Commit puts the file in its place, durably. On an error the old file is still there.
func (f *File) Commit() error {
	if f.target == "" {
		return f.file.Close()
	}
	err := errors.Join(f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	return nil
}

// Abort throws away what was written. After Commit it does nothing.
func (f *File) Abort() {
	if f.file.Close() == nil && f.target != "" {
		_ = os.Remove(f.file.Name())
	}
}

// WriteFile writes a whole file with one function, and leaves none behind when that fails.
func WriteFile(path string, write func(io.Writer) error) error {
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	return f.fill(write)
}

// private are the rights of a file that says who was sent what.
const private fs.FileMode = 0o600

// CreatePrivateFile is CreateFile for what nobody else of the machine may read, as WritePrivateFile.
func CreatePrivateFile(path string) (*File, error) { return create(path, private) }

// WritePrivateFile is WriteFile for what nobody else of the machine may read: whatever the umask, and
// whatever the rights of the file that is replaced, the new one is its owner's alone from the start.
func WritePrivateFile(path string, write func(io.Writer) error) error {
	f, err := CreatePrivateFile(path)
	if err != nil {
		return err
	}
	return f.fill(write)
}

// fill writes the file and commits it.
func (f *File) fill(write func(io.Writer) error) error {
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
