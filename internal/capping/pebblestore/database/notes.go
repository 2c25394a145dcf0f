package database

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// notes is the file FILES of a store's directory: which write-ahead logs and
// manifests there are. Pebble opens a database whose write-ahead log is gone
// without a word, and without what was sent last. A file is noted after it was
// made and before it is removed, so that what is noted is there.
type notes struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	names []string
}

// NotesFile is the file's name.
const NotesFile = "FILES"

// isNoted reports whether the file is one that is noted.
func isNoted(name string) bool {
	return strings.HasSuffix(name, ".log") || strings.HasPrefix(name, "MANIFEST-")
}

func (n *notes) add(file string) error {
	name := path.Base(file)
	if !isNoted(name) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.names, name) {
		return nil
	}
	return n.write(append(slices.Clone(n.names), name))
}

func (n *notes) remove(file string) error {
	name := path.Base(file)
	if !isNoted(name) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.names, name)
	if i < 0 {
		return nil
	}
	return n.write(slices.Delete(slices.Clone(n.names), i, i+1))
}

// write notes names. n.mu is held.
func (n *notes) write(names []string) error {
	err := replaceFile(n.fs, n.fs.PathJoin(n.dir, NotesFile), []byte(strings.Join(names, "\n")+"\n"))
	if err == nil {
		n.names = names
	}
	return err
}

// Check reads what is noted and demands that it is there. Notes that do not
// know the database's manifest are those of before an earlier version of capper
// had it open, and say nothing.
func (n *notes) Check() error {
	content, err := readFile(n.fs, n.fs.PathJoin(n.dir, NotesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	desc, err := pebble.Peek(n.dir, n.fs)
	if err != nil {
		return err
	}
	names := strings.Fields(string(content))
	if !slices.Contains(names, n.fs.PathBase(desc.ManifestFilename)) {
		return nil
	}
	var gone []string
	for _, name := range names {
		if _, err := n.fs.Stat(n.fs.PathJoin(n.dir, name)); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		return fmt.Errorf("files with the newest sends of the store are missing: %s: restore them; or, to continue "+
			"without those sends, remove the file %s",
			strings.Join(gone, ", "), n.fs.PathJoin(n.dir, NotesFile))
	}
	n.names = names
	return nil
}

// CheckPresent demands that what is noted still is in the directory.
func (n *notes) CheckPresent() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.names {
		if _, err := n.fs.Stat(n.fs.PathJoin(n.dir, name)); err != nil {
			return fmt.Errorf("files of the store were removed or replaced while it was open: %w", err)
		}
	}
	return nil
}
