package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// An entry holds the log of one pacer in memory, with all permits that were committed to the database.
type entry struct {
	key    string
	log    pacing.Log
	keep   pacing.Time // the earliest time at which the log may be removed
	stored int         // number of runs in the database; the last one may be shorter there
	damage error       // reason why the log cannot be read; nil: the log is intact
	weight int         // size of the log in bytes, as the cache counts it
}

// The method "write" adds the changed parts of the pacer's log to the database batch.
func (e *entry) write(batch *pebble.Batch) {
	// Set returns an error only for indexed batches.
	_ = batch.Set([]byte(e.key), encodeHead(head{e.keep, e.log.Total, len(e.log.Runs), e.log.Ahead.Append(nil)}), nil)
	for i := max(0, e.stored-1); i < len(e.log.Runs); i++ { // the last stored run may have grown
		_ = batch.Set(runKey(e.key, e.log.Runs[i].First), pacing.AppendRun(nil, e.log.Runs[i]), nil)
	}
	e.stored = len(e.log.Runs)
}

// The method "clear" adds a removal of the pacer's log to the database batch.
func (e *entry) clear(batch *pebble.Batch) {
	_ = batch.DeleteRange([]byte(e.key), database.After([]byte(e.key)), nil)
	e.stored = 0
}

// The method "load" reads the log of the pacer from the database. If the database has no log of the pacer, the entry
// stays empty. If parts of the stored log are missing, the method "load" returns an error.
func (e *entry) load(db *database.DB) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte(e.key), UpperBound: database.After([]byte(e.key))})
	if err != nil {
		return err
	}
	defer it.Close()
	if !it.First() {
		return it.Error()
	}
	if !bytes.Equal(it.Key(), []byte(e.key)) {
		return damaged("the log has runs of permits, but no head")
	}
	head, err := decodeHead(it.Value())
	if err != nil {
		return err
	}
	var runs []byte
	for it.Next() {
		value := it.Value()
		if len(value) != pacing.RunSize || !bytes.Equal(it.Key()[len(e.key):], value[pacing.RunSize-firstSize:]) {
			return damaged("run of permits at key %x has the invalid value %x", it.Key(), value)
		}
		runs = append(runs, value...)
	}
	if it.Error() != nil {
		return it.Error()
	}
	return e.set(head, runs)
}

// The method "set" puts the decoded head (first stored value) of a pacer's log, and its runs of permits, into the
// entry.
func (e *entry) set(head head, runs []byte) error {
	log, err := pacing.DecodeRuns(runs, head.total)
	if err != nil {
		return damaged("%w", err)
	}
	if len(log.Runs) != head.runs {
		return damaged("the log has %d runs of permits, but its head says %d", len(log.Runs), head.runs)
	}
	if err := log.DecodeAhead(head.ahead); err != nil {
		return damaged("%w", err)
	}
	e.log, e.keep, e.stored = *log, head.keep, head.runs
	return nil
}

// The type "head" is the first stored value of a pacer's log: the data about the whole log. In the database, the runs
// of permits follow the head (first stored value) of the log.
type head struct {
	keep  pacing.Time // the earliest time at which the log may be removed
	total int64       // total number of permits that were added to the log
	runs  int         // number of runs
	ahead []byte      // encoded slots ahead
}

// The stored head (first stored value) of a pacer's log begins with a version byte. Programs that know only headVersion
// cannot read a log with slots ahead (see package pacing).
const (
	headVersion  = 1
	aheadVersion = 2 // the head ends with slots ahead
)

const headSize = 1 + 8 + 8 + 4

func encodeHead(h head) []byte {
	version := byte(headVersion)
	if len(h.ahead) > 0 {
		version = aheadVersion
	}
	value := append(make([]byte, 0, headSize+len(h.ahead)), version)
	value = binary.BigEndian.AppendUint64(value, uint64(h.keep))
	value = binary.BigEndian.AppendUint64(value, uint64(h.total))
	return append(binary.BigEndian.AppendUint32(value, uint32(h.runs)), h.ahead...)
}

func decodeHead(value []byte) (h head, err error) {
	if len(value) < headSize || value[0] != headVersion && value[0] != aheadVersion ||
		(len(value) > headSize) != (value[0] == aheadVersion) {
		return h, damaged("head %x of the log: must have %d bytes and begin with the byte %d, "+
			"or have more bytes and begin with the byte %d", value, headSize, headVersion, aheadVersion)
	}
	h = head{
		keep:  pacing.Time(binary.BigEndian.Uint64(value[1:])),
		total: int64(binary.BigEndian.Uint64(value[9:])),
		runs:  int(binary.BigEndian.Uint32(value[17:])),
		ahead: bytes.Clone(value[headSize:]),
	}
	if h.keep < 0 || h.total < 0 || h.runs < 0 || len(h.ahead) == 0 && (h.total < 1 || h.runs < 1) {
		return h, damaged("head %x: out of range", value)
	}
	return h, nil
}

// damageError is the error for a stored value that is not valid.
type damageError struct{ error }

func damaged(format string, arguments ...any) error {
	return damageError{fmt.Errorf(format, arguments...)}
}

// isDamage reports whether the error is about damaged stored data, so that a retry would not help.
func isDamage(err error) bool {
	return errors.As(err, &damageError{}) || pebble.IsCorruptionError(err)
}
