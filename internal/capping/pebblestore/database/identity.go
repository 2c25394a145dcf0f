package database

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"capper/internal/capping"
)

// The type "identity" is the content of the file PATH.id beside the directory of the store. The file PATH.id remains if
// the store's directory is emptied, replaced by an older copy, or not mounted. The database holds the same values as
// the file PATH.id. The store writes the values first to the database and then to the file PATH.id, so the database
// never has older values than the file.
type identity struct {
	ID   string    `json:"id"`
	Mark uint64    `json:"mark"`          // increases while the store is used
	At   time.Time `json:"at"`            // the time at which the mark was set
	IDs  *IDs      `json:"ids,omitempty"` // nil: dense ids
}

var (
	idKey   = []byte("\x00id")
	markKey = []byte("\x00mark") // mark (8), instant (8)
)

func (c Config) identityFile() string { return strings.TrimRight(c.Path, "/") + ".id" }

// readIdentityFile reads the file PATH.id beside the directory, and returns nil if the file does not exist.
func (c Config) readIdentityFile() (*identity, error) {
	name := c.identityFile()
	content, err := readFile(c.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	found := new(identity)
	if err == nil {
		err = json.Unmarshal(content, found)
	}
	if err == nil && found.ID == "" {
		err = errors.New("file contains no store id")
	}
	if err != nil {
		return nil, fmt.Errorf("file %s, which identifies the store of this directory, cannot be read: %w"+
			"; if the store is the right one, remove the file", name, err)
	}
	return found, nil
}

// hasDatabase reports whether the directory of the store contains a Pebble database. If the directory has files of a
// database but no marker file, hasDatabase returns an error.
func (c Config) hasDatabase() (bool, error) {
	desc, err := pebble.Peek(c.Path, c.FS)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || desc.Exists {
		return err == nil, err
	}
	files, err := c.FS.List(c.Path)
	for _, file := range files {
		if IsTable(file) || strings.HasSuffix(file, ".log") {
			return false, fmt.Errorf("the store has the file %s but lacks its manifest: restore the missing files, "+
				"or use an empty directory", file)
		}
	}
	return false, err
}

// checkCreation returns an error if the configuration or a known identity forbids Open to create an empty store.
func (c Config) checkCreation() error {
	known, err := c.readIdentityFile()
	switch {
	case err != nil:
		return err
	case known != nil && c.MustExist:
		return fmt.Errorf("the store is missing, but file %s says that it was last used at %s: "+
			"mount its volume or restore its directory; "+
			"or, to start with an empty store that allows every user again, remove the file "+
			"and set 'create' to true for one start", c.identityFile(), stamp(known.At))
	case known != nil:
		return fmt.Errorf("the store is missing, but file %s says that it was last used at %s: "+
			"mount its volume or restore its directory; "+
			"or, to start with an empty store that allows every user again, remove the file",
			c.identityFile(), stamp(known.At))
	case c.MustExist:
		return errors.New("the store does not exist, and the setting 'create' is false: " +
			"check the path and that its volume is mounted; " +
			"or, to start with an empty store that allows every user again, set 'create' to true for one start")
	}
	return nil
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// The method "identify" compares the identity in the database with the file PATH.id. If the database belongs to another
// store or lacks newer data, "identify" returns an error. If the database has no identity yet, identify gives the
// database a new identity.
func (d *DB) identify(config Config) error {
	known, err := config.readIdentityFile()
	if err != nil {
		return err
	}
	if d.identity, err = d.storedIdentity(); err != nil {
		return err
	}
	own := d.identity
	switch file := config.identityFile(); {
	case known == nil:
	case own.ID != "" && own.ID != known.ID:
		return fmt.Errorf(
			"the store in this directory is not the store that file %s identifies (last used at %s): "+
				"restore the identified store, or remove the file to continue with the store in this directory",
			file, stamp(known.At))
	case own.Mark < known.Mark:
		ends := "at " + stamp(own.At)
		if own.Mark == 0 {
			ends = "before its first mark"
		}
		return fmt.Errorf("the store lacks its newest sends: file %s says that the store was last used at %s, "+
			"but the records end %s (an older copy was restored, or files are lost or damaged): "+
			"restore the newest copy, or remove the file to continue without those sends", file, stamp(known.At), ends)
	}
	if known != nil {
		if err := d.checkRest(known.At, config.identityFile()); err != nil {
			return err
		}
	}
	if d.identity.ID == "" {
		d.identity.ID = rand.Text()
	}
	if own.At.After(d.guard.known) && known != nil {
		d.guard.known = own.At
	}
	return d.Mark()
}

// storedIdentity returns the identity in the database: the id of the store and the identity mark (counter that exposes
// an old copy).
func (d *DB) storedIdentity() (own identity, err error) {
	id, err := d.Lookup(idKey)
	if err != nil {
		return own, err
	}
	mark, err := d.Lookup(markKey)
	if err != nil || mark == nil {
		return own, err
	}
	if len(mark) != 16 || len(id) == 0 {
		return own, fmt.Errorf(
			"identity mark %x (counter that reveals an old copy of the store) must have 16 bytes, "+
				"and the store id %q must not be empty", mark, id)
	}
	at := capping.Instant(binary.BigEndian.Uint64(mark[8:]))
	return identity{string(id), binary.BigEndian.Uint64(mark), at.Time(), d.config.IDs.Pointer()}, nil
}

// Identity returns the database's id and its newest identity mark (counter that exposes an old copy).
func (d *DB) Identity() (id string, mark uint64) {
	d.marking.Lock()
	defer d.marking.Unlock()
	return d.identity.ID, d.identity.Mark
}

// The method Mark increases the identity mark (a number that shows which copy is newer), first in the database and then
// in the file PATH.id. If the file PATH.id cannot be written, the status shows the reason, and the store continues to
// serve calls.
func (d *DB) Mark() error {
	d.marking.Lock()
	defer d.marking.Unlock()
	return d.mark()
}

// The method "mark" increases the identity mark (a number that shows which copy is newer) in the database and in the
// file PATH.id. The caller of the method "mark" must hold the lock d.marking.
func (d *DB) mark() error {
	next := identity{d.identity.ID, d.identity.Mark + 1, d.config.Clock(), d.config.IDs.Pointer()}
	if _, err := d.Now(); err != nil {
		next.At = d.identity.At
	}
	value := binary.BigEndian.AppendUint64(nil, next.Mark)
	value = binary.BigEndian.AppendUint64(value, uint64(max(0, capping.InstantOf(next.At))))
	batch := d.DB.NewBatch()
	defer batch.Close()
	_ = batch.Set(idKey, []byte(next.ID), nil) // fails only for indexed batches
	_ = batch.Set(markKey, value, nil)
	d.Commit(batch)
	if err := d.Sync(context.Background()); err != nil {
		return err
	}
	d.identity = next
	d.marked.Store(d.written.Load())
	content, err := json.Marshal(next)
	if err == nil {
		err = replaceFile(d.disk.FS, d.config.identityFile(), append(content, '\n'))
	}
	d.markTrouble.Store(nil)
	if err != nil {
		warning := "a lost directory would not be detected: " + err.Error()
		d.markTrouble.Store(&warning)
	}
	return nil
}

// The type "watch" holds the state of the method Watch between two calls. Only the goroutine that calls Watch uses the
// fields of the type "watch".
type watch struct {
	markedAt time.Time
	seen     int64 // the value of written at the last call
}

// markInterval is the interval at which the store increases the identity mark (the counter that exposes an old copy)
// under steady writes.
const markInterval = time.Minute

// The method Watch checks that the files of the store still exist. If a new identity mark (counter that exposes an old
// copy) is due, Watch also increases the mark. A new mark is due after a minute of writes, after the last write, and
// after a copy of the database. The store increases the mark after a copy of the database, so that a restored copy is
// recognizable as older. One goroutine calls Watch about once a second.
//
// After the last write, the store increases the identity mark (counter that exposes an old copy). With this mark, the
// next start notices damage at the end of the write-ahead log. If no later block of the write-ahead log says that a
// damaged record was synced, Pebble treats the record as the unfinished end of the log. No block after the last synced
// record says that this record was synced. If the records at the end are damaged, the database lacks the last identity
// mark, and Open returns an error. Without an identity mark after the last write, the next start would lose the sends
// in damaged records without an error.
func (d *DB) Watch(now time.Time) error {
	if err := d.disk.Notes.CheckPresent(); err != nil {
		return d.takeDown(err)
	}
	written := d.written.Load()
	rests := written == d.watch.seen
	d.watch.seen = written
	due := rests || d.copied.Load() || now.Sub(d.watch.markedAt) >= markInterval
	if !due || written == d.marked.Load() {
		return nil
	}
	d.watch.markedAt = now
	d.copied.Store(false)
	return d.Mark()
}

// The function Look reports whether the directory contains a database, and whether the file PATH.id exists beside the
// directory. The function Look does not open the database.
func Look(path string) (data, known bool, err error) {
	c := Config{Path: path, FS: vfs.Default}
	if data, err = c.hasDatabase(); err != nil {
		return data, false, err
	}
	found, err := c.readIdentityFile()
	return data, found != nil, err
}

// The function "known" returns the id and the identity mark (counter that exposes an old copy) of the store from the
// file PATH.id beside the directory. If the file PATH.id does not exist, the function "known" returns an empty Copy
// (Copy{}) and no error.
func known(path string) (Copy, error) {
	found, err := Config{Path: path, FS: vfs.Default}.readIdentityFile()
	if err != nil || found == nil {
		return Copy{}, err
	}
	return Copy{ID: found.ID, Mark: found.Mark, At: found.At}, nil
}

// KnownIDs returns the store's kind of user ids from the file PATH.id beside the directory. If the file PATH.id does
// not exist, KnownIDs returns the zero IDs, which means dense ids (32-bit integers).
func KnownIDs(path string) (IDs, error) {
	found, err := Config{Path: path, FS: vfs.Default}.readIdentityFile()
	if err != nil || found == nil {
		return IDs{}, err
	}
	return found.IDs.value(), nil
}

// The type "restored" describes the backup from which the database was restored.
type restored struct {
	Until time.Time `json:"until"` // later sends are unknown
	At    time.Time `json:"at"`
}

const restoredFile = "RESTORED"

// The function "adopt" is the last step of a restore. After adopt, the restored files are a store with the identity
// mark (counter that exposes an old copy) of the backup. The argument "since" of the function "adopt" is the time of
// the restore.
func adopt(store Copy, since time.Time) error {
	note, err := json.Marshal(restored{store.At, since})
	if err != nil {
		return err
	}
	if err := replaceFile(vfs.Default, filepath.Join(store.Dir, restoredFile),
		append(note, '\n')); err != nil {
		return err
	}
	content, err := json.Marshal(identity{store.ID, store.Mark, store.At, store.IDs.Pointer()})
	if err != nil {
		return err
	}
	return replaceFile(vfs.Default, Config{Path: store.Dir}.identityFile(), append(content, '\n'))
}

// The method Restored returns a description of the backup from which the database was last restored, or nil if the
// database was never restored.
func (d *DB) Restored() *restored { return d.restored }

// loadRestored loads the description of the backup from which the database was restored. If the description of the
// backup cannot be read, the database opens without the description.
func (d *DB) loadRestored() {
	content, err := readFile(d.config.FS, d.config.FS.PathJoin(d.config.Path, restoredFile))
	found := new(restored)
	if err == nil && json.Unmarshal(content, found) == nil {
		d.restored = found
	}
}
