package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// maxLogSize is that of a log with LogBound entries in every channel, and in none.
const maxLogSize = 256 * capping.LogBound * capping.EntrySize

// A log's value is the version of its format and then the log's entries as
// package capping writes them. A value of format 1 had no version: its length is
// a multiple of an entry's, which that of no later format may be while values of
// format 1 are read.
const (
	logVersion  = 2
	logHeader   = 1 // bytes before the entries
	bareVersion = 1 // of values without a version
)

// decodeLog is the log that a value holds, and the version that it is written
// in. The value of a user without sends is never written, so an empty one is
// damage. The log shares the value's bytes.
func decodeLog(value []byte) (log capping.Log, version int, err error) {
	log, version = capping.Log(value), bareVersion
	if len(value)%capping.EntrySize == logHeader {
		log, version = log[logHeader:], int(value[0])
		if version != logVersion {
			return nil, version, fmt.Errorf("log has format %d and must have format %d", version, logVersion)
		}
	}
	if len(log) == 0 || len(log) > maxLogSize {
		return nil, version, fmt.Errorf("log has %d bytes and must have %d to %d",
			len(log), capping.EntrySize, maxLogSize)
	}
	if err := log.Check(); err != nil {
		return nil, version, err
	}
	if last := log.At(log.Len() - 1); last >= capping.Never {
		return nil, version, fmt.Errorf("log entry has time %d and must be below %d", last, capping.Never)
	}
	return log, version, nil
}

// beginLog is dst with what stands before the entries of a log.
func beginLog(dst []byte) []byte { return append(dst, logVersion) }

// entriesOf is the log of a value that was begun with beginLog; none of no value.
func entriesOf(value []byte) capping.Log {
	if len(value) <= logHeader {
		return nil
	}
	return value[logHeader:]
}

// Logs is up to most users from an id on who have a log, in ascending order, and their logs. An error
// is of the first that cannot be read; nothing is returned then.
func (s *Store) Logs(ctx context.Context, from capping.UserID, most int) (users []capping.UserID, logs []capping.Log,
	err error) {
	err = s.db.Rescue(ctx, func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: database.LogKey(from),
			UpperBound: []byte{database.KeyLog + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		for ok := it.First(); ok && len(users) < most; ok = it.Next() {
			if len(it.Key()) != database.LogKeySize {
				continue
			}
			user := capping.UserID(binary.BigEndian.Uint32(it.Key()[1:]))
			log, _, err := decodeLog(it.Value())
			if err != nil {
				return fmt.Errorf("log of user %d: %w", user, err)
			}
			users, logs = append(users, user), append(logs, bytes.Clone(log))
		}
		return errors.Join(it.Error(), ctx.Err())
	})
	if err != nil {
		return nil, nil, err
	}
	return users, logs, nil
}
