package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// ReturnPermits returns unused permits of a request to its pacers; see pacing.Store.
func (l *pacerLogs) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	return changed(ctx, l, "give back permits", ask, func(kept *pacing.Ask) (pacing.Returned, bool, error) {
		returned, err := l.giveBack(ctx, kept, used)
		return returned, returned.Known, err
	})
}

// giveBack removes unused permits from the logs of pacers, and commits the logs without waiting for the disk.
func (l *pacerLogs) giveBack(ctx context.Context, ask *pacing.Ask, used int) (returned pacing.Returned, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(ctx.Err(), l.db.Broken()); err != nil {
		return returned, err
	}
	now, err := l.now()
	if err != nil {
		return returned, err
	}
	defer l.cache.shrink()
	entries, err := l.entries(ask)
	if err != nil {
		return returned, err
	}
	before, expires, err := l.remembered(ask, now)
	if err != nil || before == nil {
		return pacing.Returned{At: now, Targets: make([]int, len(entries))}, err
	}
	logs := logsOf(entries)
	for i := range entries {
		if l.forgottenSince(ask.Targets[i].Pacer, before.AskedAt(ask.MaxWait)) {
			logs[i] = nil
		}
	}
	returned = before.GiveBack(now, ask, used, logs)
	if returned.Permits == 0 {
		return returned, nil
	}
	batch := l.db.NewBatch()
	defer batch.Close()
	for i, e := range entries {
		if returned.Targets[i] > 0 {
			e.clear(batch)
			if _, some := e.log.Newest(); some {
				e.write(batch)
			}
			l.cache.weigh(e)
		}
	}
	_ = batch.Set(requestKey(ask.Request), encodeRequest(expires, before), nil) // fails only for indexed batches
	l.db.Commit(batch)
	return returned, l.db.Broken()
}

// forgets holds the time at which each pacer was last forgotten. If an earlier version of capper, which stored no time,
// forgot a pacer before the database was opened, the time of the opening is used instead. If the clock was set back
// before a pacer was forgotten, the time of the latest grant counts.
type forgets struct {
	opened pacing.Time
	latest pacing.Time // time of the latest grant
	at     map[string]pacing.Time
}

// loadForgets loads when each pacer was last forgotten. loadForgets ignores the time of an earlier life of a pacer,
// because an earlier version of capper has forgotten the pacer since.
func loadForgets(db *database.DB, lives lives) (forgets, error) {
	f := forgets{opened: pacing.Never, at: map[string]pacing.Time{}}
	if opened, err := db.Time(); err == nil { // otherwise the clock cannot be right
		f.opened = pacing.TimeOf(opened)
	}
	return f, eachPacer(db, resetPrefix, lifeSize+timeSize, func(pacer string, value []byte) {
		if binary.BigEndian.Uint32(value) == lives[pacer] {
			f.at[pacer] = pacing.Time(binary.BigEndian.Uint64(value[lifeSize:]))
		}
	})
}

// timeSize is the number of bytes that the database uses for the time at which a pacer was forgotten.
const timeSize = 8

// forgottenSince reports whether an operator forgot the pacer at the time t or later.
func (l *pacerLogs) forgottenSince(pacer string, t pacing.Time) bool {
	at, known := l.forgets.at[pacer]
	if !known && l.lives[pacer] > 0 {
		at, known = l.forgets.opened, true
	}
	return known && at >= t
}
