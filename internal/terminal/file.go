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

// File is a file that a program writes atomically. Until a call of Commit, the file has a temporary name in the
// directory of the target. Other programs see either the old file or the complete new file, even after a crash. A File
// is not safe for concurrent use.
//
// If the target is a pipe, a terminal or another device, CreateFile writes directly to the target.
type File struct {
	file   *os.File
	target string // "": written directly to the target
}

var _ io.Writer = (*File)(nil)

// CheckTarget checks whether a command can write a file to the path, before the command does its work. The directory of
// the file must exist, and the path must not be a directory.
func CheckTarget(path string) error {
	if path == "" {
		return errors.New("the name of the output file must not be empty")
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: its directory: %w", path, cmp.Or(err, fs.ErrNotExist))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s must be a file, but is a directory", path)
	}
	return nil
}

// CreateFile begins to write a file in an existing directory. At the end, the caller must call Commit or Abort. If the
// path is a symbolic link, Commit replaces the file to which the link points. The new file gets the mode of the
// replaced file, or the default mode if no file existed.
func CreateFile(path string) (*File, error) { return create(path, 0) }

// The function "create" creates a file with the given mode, regardless of the umask and of the mode of a replaced file.
// If the argument "rights" is 0, the function works like CreateFile.
func create(path string, rights fs.FileMode) (*File, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("symbolic link %s points to a file that does not exist", path)
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

// The function "begin" creates the temporary file in the directory of the target. If the argument "rights" is 0, the
// temporary file has the default mode.
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

// The variable "part" matches the names of the temporary files that CreateFile creates.
var part = regexp.MustCompile(`^\..+\.[0-9a-f]{8}\.part$`)

// IsPart reports whether a name is the name of a temporary file of CreateFile. If a program is killed while it writes a
// file, the temporary file remains.
func IsPart(name string) bool { return part.MatchString(name) }

// Write appends to the file.
func (f *File) Write(p []byte) (int, error) { return f.file.Write(p) }

// Commit renames the temporary file to the name of the target. After a call of Commit, the file and its name survive a
// crash of the machine. If Commit returns an error, the old file still exists.
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

// Abort deletes the temporary file. After Commit, Abort does nothing.
func (f *File) Abort() {
	if f.file.Close() == nil && f.target != "" {
		_ = os.Remove(f.file.Name())
	}
}

// WriteFile writes a file atomically. The function "write" writes the content. If the function returns an error,
// WriteFile leaves no new file behind.
func WriteFile(path string, write func(io.Writer) error) error {
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	return f.fill(write)
}

// The constant "private" is the mode of files with private data, such as a list of messages to a user.
const private fs.FileMode = 0o600

// CreatePrivateFile works like CreateFile, but only the owner can read the file; see WritePrivateFile.
func CreatePrivateFile(path string) (*File, error) { return create(path, private) }

// WritePrivateFile works like WriteFile, but only the owner can read the file, regardless of the umask and of the mode
// of a replaced file.
func WritePrivateFile(path string, write func(io.Writer) error) error {
	f, err := CreatePrivateFile(path)
	if err != nil {
		return err
	}
	return f.fill(write)
}

// The method "fill" calls the function "write", which writes the content of the file, and then commits the file.
func (f *File) fill(write func(io.Writer) error) error {
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
