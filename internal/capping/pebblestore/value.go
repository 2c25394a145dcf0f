package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// maxLogSize is the size in bytes of the largest possible log of a user. A user's log has at most LogBound entries of
// each channel, and at most LogBound entries without a channel.
const maxLogSize = 256 * capping.LogBound * capping.EntrySize

// The stored value of a user's log is a version byte, followed by the log's entries in the format of package capping.
// In format 1 of the database, a user's log has no version byte, so the length of the stored value is a multiple of
// EntrySize. As long as programs read format 1, the length of a value in a later format must not be a multiple of
// EntrySize.
const (
	logVersion  = 2
	logHeader   = 1 // bytes before the entries
	bareVersion = 1 // version of values without a version byte
)

// decodeLog returns the log and the format version in the stored value of a user's log. An empty value is an error,
// because the database has no value for a user without sends. The returned log shares the bytes of the value.
func decodeLog(value []byte) (log capping.Log, version int, err error) {
	log, version = capping.Log(value), bareVersion
	if len(value)%capping.EntrySize == logHeader {
		log, version = log[logHeader:], int(value[0])
		if version != logVersion {
			return nil, version, fmt.Errorf("stored log of a user's sends must have the format %d, got %d",
				logVersion, version)
		}
	}
	if len(log) == 0 || len(log) > maxLogSize {
		return nil, version, fmt.Errorf("stored log of a user's sends must have %d to %d bytes, got %d",
			capping.EntrySize, maxLogSize, len(log))
	}
	if err := log.Check(); err != nil {
		return nil, version, err
	}
	if last := log.At(log.Len() - 1); last >= capping.Never {
		return nil, version, fmt.Errorf(
			"stored log of a user's sends: the time of a send must be below %d ms since 2024-01-01T00:00:00Z, got %d",
			capping.Never, last)
	}
	return log, version, nil
}

// beginLog appends the version byte of a log value to dst. The caller of beginLog must append the entries of the log.
func beginLog(dst []byte) []byte { return append(dst, logVersion) }

// entriesOf returns the log in a value that begins with the version byte from beginLog. If the value is nil, entriesOf
// returns an empty log.
func entriesOf(value []byte) capping.Log {
	if len(value) <= logHeader {
		return nil
	}
	return value[logHeader:]
}

// Logs returns users with logs, and their logs, in ascending order of users from the given id on. The argument "most"
// of Logs is the maximum number of returned users. If one of the logs cannot be read, Logs returns only an error.
func (s *Store) Logs(ctx context.Context, from capping.UserID, most int) (users []capping.UserID, logs []capping.Log,
	err error) {
	err = s.db.Rescue(ctx, func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: s.db.LogKey(from),
			UpperBound: []byte{database.KeyLog + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		for ok := it.First(); ok && len(users) < most; ok = it.Next() {
			user, ok := s.db.UserOf(it.Key())
			if !ok {
				continue
			}
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
