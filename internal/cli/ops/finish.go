package ops

import (
	"fmt"
	"os"
	"path/filepath"

	"capper/internal/capping/pebblestore"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/terminal"
)

// migratedDir returns the directory name of the embedded store from the last pass on. The new name keeps a service
// from deciding on the old store again.
func migratedDir(dir string) string { return dir + ".migrated" }

// lookFor learns the ids of the store for a last pass before which no other pass was made. The file beside the
// directory, which stays when the directory is renamed, has them.
func (w *work) lookFor(dir string) (err error) {
	if w.state.Store == "" {
		w.ids, err = database.KnownIDs(dir)
	}
	return err
}

// openFinished opens the embedded store itself for the last pass, under its new name. Because nothing is recorded
// there any longer, a failed last pass can be repeated. A store that already has the new name shows that a last pass
// did not end.
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

// checkFinishing rejects another store than the one of the unfinished last pass. checkFinishing also rejects a store
// that was put back into service since, because Redis still holds sends that were released there meanwhile.
func (w *work) checkFinishing(dir string) error {
	begun := w.state.Finishing
	switch {
	case begun == "":
		return nil
	case begun != dir:
		return terminal.Hinted(fmt.Errorf(
			"--finish: must name directory %s, with which the last pass of the migration began, got %s",
			begun, dir), "add --finish "+
			begun)
	case exists(dir):
		return terminal.Hinted(fmt.Errorf(
			"directory %s exists again although the last pass renamed it: "+
				"the store may have changes that no pass can find", dir),
			"empty Redis and start the migration again with another --work")
	}
	return nil
}

// takeAway renames the store's directory, after it has checked that the store is the right one and not open.
func (w *work) takeAway(dir string) error {
	if to := migratedDir(dir); exists(to) {
		return fmt.Errorf(
			"directory %s must not exist, because the migration renames %s to it: move the existing directory away",
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

// openKnown opens a store and returns an error if it is not the store of this migration.
func (w *work) openKnown(dir string) (*pebblestore.Store, error) {
	source, err := w.open(dir)
	if err != nil {
		return nil, err
	}
	id, mark := source.Identity()
	return source, w.state.takes(dir, id, mark)
}
