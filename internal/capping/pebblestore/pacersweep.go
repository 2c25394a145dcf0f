package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// pacersSweepFrom returns the database key at which the sweep of expired logs of pacers begins.
func pacersSweepFrom() []byte { return []byte{database.KeyRequest} }

// The method Sweep removes expired logs of pacers and expired permit requests. One call of Sweep checks at most "most"
// logs and requests, beginning at the given key. Sweep returns the key for the start of the next call, or nil after the
// last key. The method Sweep skips unreadable logs and requests.
func (l *pacerLogs) Sweep(from []byte, most int) (next []byte, err error) {
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
		value, err := l.db.Lookup(key) // a call may have written the key since then
		if err != nil || value == nil || !isPast(key, value, now) {
			continue
		}
		if key[0] == database.KeyRequest {
			_ = batch.Delete(key, nil) // fails only for indexed batches
			continue
		}
		_ = batch.DeleteRange(key, database.After(key), nil)
		l.cache.drop(key)
	}
	l.db.Commit(batch)
	return next, nil
}

func (l *pacerLogs) now() (pacing.Time, error) {
	at, err := l.db.Time()
	return pacing.TimeOf(at), err
}

// findPast returns the keys of expired data of pacers: permit requests, and the heads (first values) of logs.
func (l *pacerLogs) findPast(from []byte, most int, now pacing.Time) (past [][]byte, next []byte, err error) {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{database.PacerEnd}})
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	last := from
	for ok := it.First(); ok; most-- {
		key := slices.Clone(it.Key())
		if most == 0 {
			return past, key, nil
		}
		if last = key; isPast(key, it.Value(), now) {
			past = append(past, key)
		}
		if isHead(key) {
			ok = it.SeekGE(database.After(key)) // skips the runs of the log
		} else {
			ok = it.Next()
		}
	}
	if err = it.Error(); isDamage(err) {
		l.db.NotePacerUnreadable("block",
			fmt.Errorf("a database block with pacer logs or with requests for permits is damaged: %w", err))
		return past, l.behindDamage(last), nil
	}
	return past, nil, err
}

// The method behindDamage returns the key at which the sweep (search for expired data) continues after an unreadable
// key. After an unreadable request, the sweep continues at the first log of a pacer. After an unreadable log, the sweep
// continues at the next life (number of a reset of a pacer) in the keys.
func (l *pacerLogs) behindDamage(key []byte) []byte {
	if key[0] == database.KeyRequest {
		return []byte{database.KeyPacer}
	}
	here := binary.BigEndian.Uint32(append(slices.Clone(key[1:]), 0, 0, 0, 0))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, life := range slices.Sorted(maps.Values(l.lives)) {
		if life > here {
			return binary.BigEndian.AppendUint32([]byte{database.KeyPacer}, life)
		}
	}
	return nil
}

// isHead reports whether a database key is the key of the head (first stored value) of a pacer's log.
func isHead(key []byte) bool { return key[0] == database.KeyPacer && bytes.Equal(pacerLogOf(key), key) }

// isPast reports whether a stored permit request or a pacer's log has expired. For a log, the argument "value" is the
// head (first stored value) of the log.
func isPast(key, value []byte, now pacing.Time) bool {
	if key[0] == database.KeyRequest {
		expires, err := decodeExpiry(value)
		return err == nil && expires <= now
	}
	head, err := decodeHead(value)
	return err == nil && isHead(key) && head.keep <= now
}
