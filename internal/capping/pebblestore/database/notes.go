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

// The type "notes" is the file FILES in a store's directory: a list of the write-ahead logs and manifests that must
// exist. If a write-ahead log is missing, Pebble opens the database without the sends in this log, and reports no
// error. The list reveals the missing file. The store adds a file to the list after its creation, and removes the file
// from the list before its deletion. Every file in the list must therefore exist.
type notes struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	names []string
}

// NotesFile is the name of the file that lists the write-ahead logs and manifests.
const NotesFile = "FILES"

// isNoted reports whether the file with the given name is a write-ahead log or a manifest, so that the list FILES must
// contain the name.
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

// The method "write" writes the list of names to the file FILES. The caller of the method "write" must hold the lock
// n.mu.
func (n *notes) write(names []string) error {
	err := replaceFile(n.fs, n.fs.PathJoin(n.dir, NotesFile), []byte(strings.Join(names, "\n")+"\n"))
	if err == nil {
		n.names = names
	}
	return err
}

// The method Check reads the list FILES and returns an error if a listed file is missing. If the list lacks the present
// manifest of the database, the method Check ignores the list, because an older version of capper has used the store.
// Older versions do not write FILES.
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
		return fmt.Errorf("files with the newest sends of the store are missing: %s: "+
			"restore them; or, to continue without those sends, remove the file %s",
			strings.Join(gone, ", "), n.fs.PathJoin(n.dir, NotesFile))
	}
	n.names = names
	return nil
}

// CheckPresent returns an error if a file in the list FILES is missing in the directory.
func (n *notes) CheckPresent() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.names {
		if _, err := n.fs.Stat(n.fs.PathJoin(n.dir, name)); err != nil {
			return fmt.Errorf("files of the store were removed or replaced while the store was open: %w", err)
		}
	}
	return nil
}
