package database

import (
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// refusing is a file system that refuses writes to one file.
type refusing struct {
	vfs.FS
	name string
}

func (r refusing) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := r.FS.Create(name, category)
	if err == nil && name == r.name {
		file = refusingFile{file}
	}
	return file, err
}

type refusingFile struct{ vfs.File }

func (refusingFile) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFreezingAnOpeningLeavesNoHalfTables checks that a failed opening leaves no unfinished tables. Finished
// tables stay, because the manifest may name them, and a serving database removes nothing.
func TestFreezingAnOpeningLeavesNoHalfTables(t *testing.T) {
	t.Parallel()
	for _, serving := range []bool{false, true} {
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("/db", 0o700))
		d := New(refusing{mem, "/db/3.sst"}, "/db", func(error) {})
		d.EndPauses()
		if serving {
			d.Serve()
		}
		write := func(name string, whole bool) {
			file, err := d.Create(name, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = file.Write([]byte("half"))
			require.Equal(t, name == "/db/3.sst", err != nil)
			if whole {
				require.NoError(t, file.Close())
			}
		}
		write("/db/1.sst", true)
		write("/db/2.sst", false)
		write("/db/4.log", false)
		write("/db/3.sst", true) // refused and closed, not removed yet
		d.Freeze()
		d.Freeze()
		left, err := mem.List("/db")
		require.NoError(t, err)
		if serving {
			require.ElementsMatch(t, []string{"1.sst", "2.sst", "3.sst", "4.log", NotesFile}, left)
		} else {
			require.ElementsMatch(t, []string{"1.sst", "4.log", NotesFile}, left)
		}
	}
}
