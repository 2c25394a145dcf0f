package pacerlogs

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// SweepFrom is where a pass of Sweep begins.
func SweepFrom() []byte { return []byte{database.KeyPacer} }

// Sweep looks at so many logs and requests from a key on and removes those that are
// past. It returns where the next step begins; nil after the last one. What it
// cannot read it leaves alone.
func (l *Logs) Sweep(from []byte, most int) (next []byte, err error) {
	now, err := l.now()
	if err != nil {
		return nil, err
	}
	past, next, err := l.findPast(from, most, now)
	if err != nil || len(past) == 0 {
		return next, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.db.NewBatch()
	defer batch.Close()
	for _, key := range past {
		value, err := l.db.Lookup(key) // a call may have written it
		if err != nil || value == nil || !isPast(key, value, now) {
			continue
		}
		if key[0] == database.KeyRequest {
			_ = batch.Delete(key, nil) // fails only for indexed batches
			continue
		}
		_ = batch.DeleteRange(key, after(key), nil)
		l.cache.drop(key)
	}
	l.db.Commit(batch)
	return next, nil
}

func (l *Logs) now() (pacing.Time, error) {
	at, err := l.db.Time()
	return pacing.TimeOf(at), err
}

// findPast lists the keys of what is past: of logs those of their heads.
func (l *Logs) findPast(from []byte, most int, now pacing.Time) (past [][]byte, next []byte, err error) {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{database.PacerEnd}})
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	for ok := it.First(); ok; most-- {
		key := slices.Clone(it.Key())
		if most == 0 {
			return past, key, nil
		}
		if isPast(key, it.Value(), now) {
			past = append(past, key)
		}
		if log := logOf(key); key[0] == database.KeyPacer && bytes.Equal(log, key) {
			ok = it.SeekGE(after(key))
		} else {
			ok = it.Next()
		}
	}
	return past, nil, it.Error()
}

// isPast reports whether the value is that of a log's head or a request, and neither
// is asked for any more.
func isPast(key, value []byte, now pacing.Time) bool {
	if key[0] == database.KeyRequest {
		expires, _, err := decodeRequest(value)
		return err == nil && expires <= now
	}
	head, err := decodeHead(value)
	return err == nil && bytes.Equal(logOf(key), key) && head.keep <= now
}
