package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// ReturnPermits gives unused permits of a request back to the pacers; see pacing.Store.
func (l *pacerLogs) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	return changed(ctx, l, "give back permits", ask, func(kept *pacing.Ask) (pacing.Returned, bool, error) {
		returned, err := l.giveBack(ctx, kept, used)
		return returned, returned.Known, err
	})
}

// giveBack removes unused permits from the logs of pacers, and commits the logs without a sync to the disk.
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

// The type "forgets" holds the time of each pacer's last reset. Earlier versions of capper stored no time of a reset;
// this program then uses the time at which it opened the database. If the clock was set back before a reset, the time
// of the latest grant replaces the time of the reset.
type forgets struct {
	opened pacing.Time
	latest pacing.Time // time of the latest grant
	at     map[string]pacing.Time
}

// loadForgets loads the time of each pacer's last reset. If an earlier version of capper has reset the pacer since, the
// stored time belongs to an earlier life (time between two resets), and loadForgets ignores it.
func loadForgets(db *database.DB, lives lives) (forgets, error) {
	f := forgets{opened: pacing.Never, at: map[string]pacing.Time{}}
	if opened, err := db.Time(); err == nil { // on an error, the clock is surely wrong
		f.opened = pacing.TimeOf(opened)
	}
	return f, eachPacer(db, resetPrefix, lifeSize+timeSize, func(pacer string, value []byte) {
		if binary.BigEndian.Uint32(value) == lives[pacer] {
			f.at[pacer] = pacing.Time(binary.BigEndian.Uint64(value[lifeSize:]))
		}
	})
}

// timeSize is the number of bytes of a reset's time in the database.
const timeSize = 8

// forgottenSince reports whether an operator reset the pacer at the time t or later.
func (l *pacerLogs) forgottenSince(pacer string, t pacing.Time) bool {
	at, known := l.forgets.at[pacer]
	if !known && l.lives[pacer] > 0 {
		at, known = l.forgets.opened, true
	}
	return known && at >= t
}
