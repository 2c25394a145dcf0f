package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Mount is a directory that changes like a mounted ConfigMap or Secret in a pod (pkg/volume/util/atomic_writer.go in
// Kubernetes). Each set of files in a Mount has its own directory, and the symlink ..data points to the directory of
// the current set. The visible files of a Mount are symlinks through ..data. To change the files, Swap renames a new
// symlink to ..data, and removes the old files immediately.
type Mount struct {
	Dir     string
	t       testing.TB
	serial  int
	current string // the directory behind the symlink ..data
}

// NewMount returns a Mount with the given files. The keys of the map "files" are the names of the files.
func NewMount(t testing.TB, files map[string]string) *Mount {
	t.Helper()
	m := &Mount{Dir: t.TempDir(), t: t}
	m.Swap(files)
	for name := range files {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), m.Path(name)))
	}
	return m
}

// Path returns the visible path of the file with the given name in the Mount.
func (m *Mount) Path(name string) string { return filepath.Join(m.Dir, name) }

// The method Swap replaces all files in the Mount by new files with the same names.
func (m *Mount) Swap(files map[string]string) {
	m.t.Helper()
	m.serial++
	next := fmt.Sprintf("..2026_11_22_19_10_00.%09d", m.serial)
	require.NoError(m.t, os.Mkdir(m.Path(next), 0o755))
	for name, text := range files {
		require.NoError(m.t, os.WriteFile(filepath.Join(m.Dir, next, name), []byte(text), 0o644))
	}
	require.NoError(m.t, os.Symlink(next, m.Path("..data_tmp")))
	require.NoError(m.t, os.Rename(m.Path("..data_tmp"), m.Path("..data")))
	if m.current != "" {
		require.NoError(m.t, os.RemoveAll(m.Path(m.current)))
	}
	m.current = next
}
