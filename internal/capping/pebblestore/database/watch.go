package database

import "time"

// watch is what Watch remembers of the times before. It belongs to the goroutine
// that calls it.
type watch struct {
	markedAt time.Time
	seen     int64 // written, at the last look
}

// markInterval is how often a store that is written to without a rest sets its
// mark.
const markInterval = time.Minute

// Watch looks whether the store's files are still there, and sets a mark when
// something was written since the last and it is due, or nothing is being written
// any more. It is called about once a second, by one goroutine.
//
// The mark of a store that rests is what tells damage from a crash: Pebble takes a
// damaged record for the torn end of the write-ahead log unless a later block says
// that the log was synced beyond it, and what was synced last has no block behind
// it. With a mark behind it, whose number the file beside the directory knows, the
// next start refuses what would else be the silent loss of those sends.
func (d *DB) Watch(now time.Time) error {
	if err := d.disk.Notes.CheckPresent(); err != nil {
		return d.takeDown(err)
	}
	written := d.written.Load()
	rests := written == d.watch.seen
	d.watch.seen = written
	due := rests || now.Sub(d.watch.markedAt) >= markInterval
	if !due || written == d.marked.Load() {
		return nil
	}
	d.watch.markedAt = now
	return d.Mark()
}
