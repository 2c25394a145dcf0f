package ops

import (
	"fmt"
	"os"
	"path/filepath"

	"capper/internal/capping/pebblestore"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/terminal"
)

// migratedDir returns the new name of the embedded store's directory for the last pass of a migration. Because of the
// new name, a service with the old configuration can no longer use the store.
func migratedDir(dir string) string { return dir + ".migrated" }

// lookFor reads the kind of user ids of the embedded store, if the last pass of a migration is also the first pass. The
// kind of user ids is in a file beside the directory of the embedded store. When the migration renames the directory,
// the file with the kind of user ids keeps its name.
func (w *work) lookFor(dir string) (err error) {
	if w.state.Store == "" {
		w.ids, err = database.KnownIDs(dir)
	}
	return err
}

// openFinished renames the directory of the embedded store, and opens the store (not a copy) for the last pass of a
// migration. No service writes to the renamed store, so operators can repeat a failed last pass. If the directory
// already has the new name, an earlier last pass did not finish.
func (w *work) openFinished(dir string) (Source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := w.checkFinishing(dir); err != nil {
		return nil, err
	}
	again := !exists(dir) && exists(migratedDir(dir))
	if !again {
		if err := w.takeAway(dir); err != nil {
			return nil, err
		}
	}
	source, err := w.openKnown(migratedDir(dir))
	if err != nil {
		return nil, err
	}
	if again {
		w.unfinished = append(w.unfinished, source)
	}
	return source, w.note(func(s *state) { s.Finishing = dir })
}

// checkFinishing returns an error if an unfinished last pass of the migration began with another directory.
// checkFinishing also returns an error if a service has used the embedded store since that last pass began. If the pass
// continued, Redis would keep sends that the service has released since the last pass began.
func (w *work) checkFinishing(dir string) error {
	begun := w.state.Finishing
	switch {
	case begun == "":
		return nil
	case begun != dir:
		return terminal.Hinted(fmt.Errorf(
			"--finish must name directory %s, because the last migration pass began with this directory, got %s",
			begun, dir), "add --finish "+
			begun)
	case exists(dir):
		return terminal.Hinted(fmt.Errorf(
			"directory %s exists again, although the last migration pass renamed it: "+
				"a service may have changed this store since that pass", dir),
			"empty Redis and start the migration again with another --work")
	}
	return nil
}

// takeAway renames the directory of the embedded store, so that no service uses the store any more. Before the
// renaming, takeAway checks that the store belongs to the migration, and that no other process has opened the store.
func (w *work) takeAway(dir string) error {
	if to := migratedDir(dir); exists(to) {
		return fmt.Errorf(
			"directory %s must not exist, because the migration renames %s to this name: "+
				"move the existing directory away",
			to, dir)
	}
	if _, err := w.openKnown(dir); err != nil {
		return err
	}
	store := w.stores[len(w.stores)-1]
	w.stores = w.stores[:len(w.stores)-1]
	if err := store.Close(); err != nil {
		return err
	}
	return os.Rename(dir, migratedDir(dir))
}

// openKnown opens an embedded store, and returns an error if the store does not belong to this migration.
func (w *work) openKnown(dir string) (*pebblestore.Store, error) {
	source, err := w.open(dir)
	if err != nil {
		return nil, err
	}
	id, mark := source.Identity()
	return source, w.state.takes(dir, id, mark)
}
