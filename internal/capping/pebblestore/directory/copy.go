package directory

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CopyFolder is where a database's copy is made for a backup: in its own directory, so that
// tables are in both by a link, and take no room twice.
func CopyFolder(fs vfs.FS, dir string) string { return fs.PathJoin(dir, "BACKUP") }

var errNoLinks = errors.New("the file system of the store has no hard links: a copy would take as much room as the " +
	"store: " +
	"stop the service and copy the directory, or move it to a file system that has them")

// isCopy reports whether the file is one of the copy.
func (d *Disk) isCopy(name string) bool {
	return name == d.copied || strings.HasPrefix(name, d.copied) && strings.HasPrefix(name[len(d.copied):], "/")
}

// copyDir is the folder of a copy. Nobody needs it after a crash, and Pebble panics where the
// folder cannot be synced.
type copyDir struct{ vfs.File }

// Sync does nothing.
func (copyDir) Sync() error { return nil }
