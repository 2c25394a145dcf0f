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

// The method Commit makes the writes of the batch visible to readers. The writes of the batch become durable with the
// next Sync.
func (d *DB) Commit(batch *pebble.Batch) {
	if err := batch.Commit(pebble.NoSync); err != nil {
		_ = d.takeDown(err) // callers get the error from Sync or Broken
	}
	d.written.Add(1)
}

// Sync returns when the writes of every earlier Commit are durable on the disk. Concurrent calls of Sync share one sync
// to the disk. The method Sync uses the context only for the trace.
func (d *DB) Sync(ctx context.Context) error {
	written := d.written.Load()
	if d.synced.Load() >= written {
		return d.Broken()
	}
	_, part := trace.Start(ctx, "sync")
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

// The method Put adds a write of the user's log to the batch, or a removal of the log if the argument "value" is empty.
func (d *DB) Put(batch *pebble.Batch, user capping.UserID, value []byte) {
	d.putValue(batch, user, value)
	d.mend(batch, user, value)
}

func (d *DB) putValue(batch *pebble.Batch, user capping.UserID, value []byte) {
	if len(value) == 0 {
		op := batch.DeleteDeferred(d.logKeySize())
		d.userKey(op.Key[:0], KeyLog, user)
		_ = op.Finish() // fails only for indexed batches
		return
	}
	op := batch.SetDeferred(d.logKeySize(), len(value))
	d.userKey(op.Key[:0], KeyLog, user)
	copy(op.Value, value)
	_ = op.Finish()
}

// Copy describes a copy of a database at one instant. The copied files are in a folder inside the directory of the
// database.
type Copy struct {
	Dir  string
	ID   string    // the store's id
	Mark uint64    // the newest identity mark in the copy
	At   time.Time // time of the mark; the copy contains all writes until this time
	IDs  IDs       // the kind of the users' ids
}

// errCopied is the error of a backup that starts while another backup is in progress.
var errCopied = errors.New("another backup is in progress")

// The method Copy copies the database to files inside the directory. The copy contains everything that was committed
// before the call of Copy. The copy contains hard links to the tables of the database. A copy needs disk space only for
// the write-ahead logs, and for tables that the database replaces later. The function in the result "end" removes the
// copy.
func (d *DB) Copy() (made Copy, end func() error, err error) {
	if !d.copying.CompareAndSwap(false, true) {
		return Copy{}, nil, errCopied
	}
	dir := CopyFolder(d.config.FS, d.config.Path)
	end = func() error {
		defer d.copying.Store(false)
		return d.config.FS.RemoveAll(dir)
	}
	d.marking.Lock() // the mark must be the newest mark in the copy
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
	return Copy{dir, d.identity.ID, d.identity.Mark, d.identity.At, d.config.IDs}, end, nil
}

// copyRoom is the free disk space that a copy needs in addition to the size of the write-ahead logs. While a copy
// exists, the store uses the space copyRoom for its own writes.
const copyRoom = 2 * memTables * memTableSize

// checkRoom returns an error if a copy of the database could fill the disk.
func (d *DB) checkRoom() error {
	usage, err := d.config.FS.GetDiskUsage(d.config.Path)
	if err != nil {
		return nil // this file system does not report its free space
	}
	need := d.DB.Metrics().WAL.PhysicalSize + copyRoom
	if usage.AvailBytes < need {
		return fmt.Errorf("only %d MiB are free at %s, but a backup temporarily needs %d MiB "+
			"(for a copy of recent records, and for new records)",
			usage.AvailBytes>>20, d.config.Path, need>>20)
	}
	return nil
}
