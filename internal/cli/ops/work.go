package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"capper/client"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/terminal"
)

// The constants below are the names in the working directory of a migration. For each copy of the embedded store, the
// file COPY.id contains the id of the copied store.
const (
	lastCopy = "copy"        // copy of the last finished pass
	nextCopy = "next"        // copy of the current pass
	halfCopy = "unfinished-" // prefix, followed by a number: copy of an unfinished pass
	archive  = "next.tar"
)

// copyCache is the size in bytes of the cache for each opened copy of the embedded store. The cache of a copied store
// is small, because a migration pass reads the copy only once, in order of the users.
const copyCache = 64 << 20

// The type work is the working directory of a migration, with copies of the embedded store.
type work struct {
	dir        string
	state      state
	ids        database.IDs // user ids of the embedded store
	last       Source       // copy of the last finished pass; nil: no finished pass
	unfinished []Source     // copies of later passes that did not finish
	stores     []*pebblestore.Store
}

func openWork(dir string, finish bool) (w *work, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	w = &work{dir: dir}
	if err := w.begin(finish); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *work) begin(finish bool) (err error) {
	if w.state, err = readState(w.dir); err != nil {
		return err
	}
	switch s := &w.state; {
	case s.Finished != nil:
		return terminal.Hinted(fmt.Errorf("the migration in %s already ended, at %s", w.dir,
			s.Finished.Format(time.RFC3339)),
			"start the service with the new configuration")
	case s.Finishing != "" && !finish:
		return terminal.Hinted(errors.New(
			"the last pass of the migration has already started: no other pass can run now"),
			"add --finish "+s.Finishing+"; to keep the embedded store, rename "+migratedDir(s.Finishing)+
				" to that name, empty Redis, and start again with another --work later")
	}
	if w.state.IDs != nil {
		w.ids = *w.state.IDs
	}
	return w.openCopies()
}

// openCopies opens the copies of the embedded store from earlier passes. The migration keeps the copy of an unfinished
// pass, because the pass may have written sends of this copy to Redis.
func (w *work) openCopies() error {
	half, err := filepath.Glob(w.path(halfCopy + "*.id"))
	if err != nil {
		return err
	}
	if exists(w.path(nextCopy)) && exists(w.path(nextCopy)+".id") {
		name := w.path(fmt.Sprintf("%s%d", halfCopy, len(half)+1))
		if err := rename(w.path(nextCopy), name); err != nil {
			return err
		}
		half = append(half, name+".id")
	}
	for _, file := range half {
		source, err := w.open(strings.TrimSuffix(file, ".id"))
		if err != nil {
			return err
		}
		w.unfinished = append(w.unfinished, source)
	}
	if exists(w.path(lastCopy)) {
		w.last, err = w.open(w.path(lastCopy))
	}
	return err
}

func (w *work) path(name string) string { return filepath.Join(w.dir, name) }

// The method "note" calls the function "reached", which changes the state of the migration, and stores the state in a
// file.
func (w *work) note(reached func(*state)) error {
	reached(&w.state)
	return w.state.write(w.dir)
}

// The method "open" opens an embedded store, and returns an error if another process has opened the store.
func (w *work) open(dir string) (*pebblestore.Store, error) {
	store, err := pebblestore.Open(context.Background(), pebblestore.Config{Path: dir, MustExist: true,
		CacheBytes: copyCache, IDs: w.ids})
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	w.stores = append(w.stores, store)
	return store, nil
}

// The method "fetch" downloads a copy of the running service's embedded store to the working directory of the
// migration.
func (w *work) fetch(ctx context.Context, api *client.Client) error {
	if err := w.dropNext(); err != nil { // removes an incomplete copy that no pass has used
		return err
	}
	check := database.NewChecker()
	err := terminal.WritePrivateFile(w.path(archive), func(to io.Writer) error {
		if err := api.Backup(ctx, io.MultiWriter(to, check)); err != nil {
			return err
		}
		return check.Check()
	})
	if err != nil {
		return err
	}
	file, err := os.Open(w.path(archive))
	if err != nil {
		return err
	}
	manifest, err := database.Restore(file, w.path(nextCopy), true, time.Now())
	if err := errors.Join(err, file.Close(), remove(w.path(archive))); err != nil {
		return err
	}
	if w.state.Store != "" && w.state.Store != manifest.Store {
		return errors.Join(w.state.errAnother("that of the service"), w.dropNext())
	}
	if manifest.IDs != nil {
		w.ids = *manifest.IDs
	}
	return w.note(func(s *state) {
		s.Store, s.IDs, s.Mark, s.Channels = manifest.Store, manifest.IDs, manifest.Mark, manifest.Channels
	})
}

func (w *work) dropNext() error {
	return errors.Join(os.RemoveAll(w.path(nextCopy)), remove(w.path(nextCopy)+".id"))
}

// The method "end" records in the state of the migration that the pass has finished. After the last pass, the method
// also records that the migration has finished.
func (w *work) end() error {
	if err := w.close(); err != nil {
		return err
	}
	if w.state.Finishing != "" {
		now := time.Now().UTC()
		return w.note(func(s *state) { s.Finished = &now })
	}
	old, err := filepath.Glob(w.path(halfCopy + "*"))
	if err != nil {
		return err
	}
	for _, path := range append(old, w.path(lastCopy), w.path(lastCopy)+".id") {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return rename(w.path(nextCopy), w.path(lastCopy))
}

// The method "close" closes all stores that the migration has opened. Callers may call close again.
func (w *work) close() (err error) {
	for _, store := range w.stores {
		err = errors.Join(err, store.Close())
	}
	w.stores = nil
	return err
}

// The function "rename" renames the directory of a copied store, and the file COPY.id beside the directory. If the
// command is killed after it has renamed only the directory, the next run of the command rejects the directory.
func rename(from, to string) error {
	return errors.Join(os.Rename(from, to), os.Rename(from+".id", to+".id"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The function "remove" removes a file. If the file does not exist, "remove" returns nil.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
