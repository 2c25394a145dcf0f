package database

import (
	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// Commit makes the batch visible, and not yet durable.
func (d *DB) Commit(batch *pebble.Batch) {
	if err := batch.Commit(pebble.NoSync); err != nil {
		_ = d.takeDown(err) // who called it asks Sync or Broken
	}
	d.written.Add(1)
}

// Sync returns when everything that was committed before is durable. Calls
// that sync at the same time share one write to the disk.
func (d *DB) Sync() error {
	written := d.written.Load()
	if d.synced.Load() >= written {
		return d.Broken()
	}
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
