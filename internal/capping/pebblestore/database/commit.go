package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/trace"
)

// Commit makes the batch visible, and not yet durable.
func (d *DB) Commit(batch *pebble.Batch) {
	if err := batch.Commit(pebble.NoSync); err != nil {
		_ = d.takeDown(err) // who called it asks Sync or Broken
	}
	d.written.Add(1)
}

// Sync returns when everything that was committed before is durable. Calls
// that sync at the same time share one write to the disk. The context is for the trace only.
func (d *DB) Sync(ctx context.Context) error {
	written := d.written.Load()
	if d.synced.Load() >= written {
		return d.Broken()
	}
	part := trace.Of(ctx).Part("sync")
	defer part.End()
	if err := d.DB.LogData(nil, pebble.Sync); err != nil {
		return d.takeDown(err)
	}
	if err := d.Broken(); err != nil {
		return err
	}
	for {
		synced := d.synced.Load()
		if synced >= written || d.synced.CompareAndSwap(synced, written) {
			return nil
		}
	}
}

// Put makes value the user's in the batch; an empty one removes what is there.
func (d *DB) Put(batch *pebble.Batch, user capping.UserID, value []byte) {
	putValue(batch, user, value)
	d.mend(batch, user, value)
}

func putValue(batch *pebble.Batch, user capping.UserID, value []byte) {
	if len(value) == 0 {
		op := batch.DeleteDeferred(LogKeySize)
		putLogKey(op.Key, user)
		_ = op.Finish() // fails only for indexed batches
		return
	}
	op := batch.SetDeferred(LogKeySize, len(value))
	putLogKey(op.Key, user)
	copy(op.Value, value)
	_ = op.Finish()
}

// Copy is a database as it was at an instant: files in a folder of its directory.
type Copy struct {
	Dir  string
	ID   string    // of the store
	Mark uint64    // that it has as its newest
	At   time.Time // of the mark: what was answered until then is in the copy
}

// errCopied is that a copy is in use already.
var errCopied = errors.New("another backup is in progress")

// Copy makes a copy of the database with all that was committed before. Its tables are
// links: it takes the room of the write-ahead logs, and of tables that the database has
// replaced since. end removes it.
func (d *DB) Copy() (made Copy, end func() error, err error) {
	if !d.copying.CompareAndSwap(false, true) {
		return Copy{}, nil, errCopied
	}
	dir := CopyFolder(d.config.FS, d.config.Path)
	end = func() error {
		defer d.copying.Store(false)
		return d.config.FS.RemoveAll(dir)
	}
	d.marking.Lock() // so that the mark is the copy's newest
	defer d.marking.Unlock()
	if err = errors.Join(d.config.FS.RemoveAll(dir), d.checkRoom()); err == nil {
		err = d.mark()
	}
	if err == nil {
		err = d.DB.Checkpoint(dir, pebble.WithFlushedWAL())
	}
	if err != nil {
		return Copy{}, nil, fmt.Errorf("copy the database: %w", errors.Join(err, end()))
	}
	d.copied.Store(true)
	return Copy{dir, d.identity.ID, d.identity.Mark, d.identity.At}, end, nil
}

// copyRoom is how much room a disk must have for a copy, beside as much as is in the write-ahead
// logs: the store itself goes on writing.
const copyRoom = 2 * memTables * memTableSize

// checkRoom refuses a copy that could fill the disk under the store.
func (d *DB) checkRoom() error {
	usage, err := d.config.FS.GetDiskUsage(d.config.Path)
	if err != nil {
		return nil // a file system that cannot tell
	}
	need := d.DB.Metrics().WAL.PhysicalSize + copyRoom
	if usage.AvailBytes < need {
		return fmt.Errorf("only %d MiB are free at %s, but a backup temporarily needs %d MiB for a copy of recent "+
			"records and for the running store",
			usage.AvailBytes>>20, d.config.Path, need>>20)
	}
	return nil
}
