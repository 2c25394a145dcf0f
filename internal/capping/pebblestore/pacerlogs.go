package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// The type pacerLogs keeps the logs of all pacers (named rate limits) in the store, and is safe for concurrent use.
type pacerLogs struct {
	db *database.DB

	mu      sync.Mutex // protects the fields below, and all keys of pacers in the database
	cache   pacerCache
	lives   lives
	forgets forgets
	leases  leases
}

var _ pacing.Store = (*pacerLogs)(nil)

// openPacerLogs loads the data about pacers that the store needs in memory from an open database.
func openPacerLogs(db *database.DB) (*pacerLogs, error) {
	lives, err := loadLives(db)
	if err != nil {
		return nil, err
	}
	forgets, err := loadForgets(db, lives)
	if err != nil {
		return nil, err
	}
	leases, err := loadLeases(db)
	return &pacerLogs{db: db, cache: newPacerCache(cacheBytes), lives: lives, forgets: forgets, leases: leases}, err
}

// TakePermits adds the permits of the request "ask" to the logs of the request's pacers; see pacing.Store.
func (l *pacerLogs) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	return changed(ctx, l, "take permits", ask, func(kept *pacing.Ask) (pacing.Grant, bool, error) {
		grant, err := l.take(ctx, kept)
		return grant, grant.Granted > 0 || ask.Remembers(0), err
	})
}

// The function "changed" checks the request "ask", and calls the function "change" with a copy of the request. If
// "change" returns true as the result "effect", the function "changed" waits for a sync to the disk. For a repeated
// request, the result "effect" is also true, because the first call of this request may not be durable yet.
func changed[Answer any](ctx context.Context, l *pacerLogs, what string, ask *pacing.Ask,
	change func(kept *pacing.Ask) (answer Answer, effect bool, err error)) (Answer, error) {
	var none, answer Answer
	if err := ask.Check(); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	kept := clone(ask) // the caller may stop waiting and reuse the ask
	err := l.db.Write(ctx, func() (err error) {
		var effect bool
		if answer, effect, err = change(kept); err != nil || !effect {
			return err
		}
		return l.db.Sync(ctx)
	})
	var reused *pacing.ReuseError
	switch {
	case errors.As(err, &reused):
		return none, reused
	case err != nil:
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return answer, nil
}

func clone(ask *pacing.Ask) *pacing.Ask {
	c := *ask
	c.Targets = slices.Clone(ask.Targets)
	for i := range c.Targets {
		c.Targets[i].Limits = slices.Clone(c.Targets[i].Limits)
	}
	return &c
}

// The method "take" finds slots (send times) for permits in the logs of pacers, and commits the logs without a sync to
// the disk.
func (l *pacerLogs) take(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(ctx.Err(), l.db.Broken()); err != nil {
		return pacing.Grant{}, err
	}
	now, err := l.now()
	if err != nil {
		return pacing.Grant{}, err
	}
	l.forgets.latest = max(l.forgets.latest, now)
	defer l.cache.shrink()
	entries, err := l.entries(ask)
	if err != nil {
		return pacing.Grant{}, err
	}
	before, _, err := l.remembered(ask, now)
	if err != nil {
		return pacing.Grant{}, err
	}
	if before != nil {
		look := *ask
		look.Permits = 0
		placed := pacing.Place(now, &look, logsOf(entries))
		placed.Log, placed.More = before.Log, before.More
		grant := grantOf(now, ask, &placed, entries)
		grant.Replayed = true
		return grant, nil
	}
	placed := pacing.Place(now, ask, logsOf(entries))
	switch {
	case placed.Total > 0:
		l.record(now, ask, &placed, entries)
	case ask.Remembers(0):
		batch := l.db.NewBatch()
		remember(batch, now, ask, &placed)
		l.db.Commit(batch)
		_ = batch.Close()
	}
	return grantOf(now, ask, &placed, entries), l.db.Broken()
}

func logsOf(entries []*entry) []*pacing.Log {
	logs := make([]*pacing.Log, len(entries))
	for i, e := range entries {
		logs[i] = &e.log
	}
	return logs
}

func grantOf(now pacing.Time, ask *pacing.Ask, placed *pacing.Placed, entries []*entry) pacing.Grant {
	grant := pacing.Grant{
		At: now, Granted: int(placed.Total), Runs: placed.WaitRuns(now), More: placed.More,
		Next: placed.Next.Sub(now), Target: placed.Target, Limit: placed.Limit,
	}
	for i, e := range entries {
		grant.States = append(grant.States, pacing.StateOf(now, &ask.Targets[i], &e.log))
	}
	return grant
}

// The method "entries" returns the logs of the pacers in the request "ask".
func (l *pacerLogs) entries(ask *pacing.Ask) ([]*entry, error) {
	entries := make([]*entry, len(ask.Targets))
	for i, target := range ask.Targets {
		e, err := l.entry(target.Pacer, target.Message)
		if err != nil {
			return nil, err
		}
		entries[i] = e
	}
	return entries, nil
}

// The method "entry" returns the log of a pacer, from the cache or from the database.
func (l *pacerLogs) entry(pacer, message string) (*entry, error) {
	key, err := logKey(l.lives[pacer], pacer, message)
	if err != nil {
		return nil, err
	}
	if e := l.cache.entry(key); e != nil {
		return e, e.damage
	}
	e := &entry{key: string(key)}
	if err := e.load(l.db); err != nil {
		err = fmt.Errorf("stored log of pacer %q cannot be read; reset the pacer with DELETE /v1/pacers/%s: %w",
			pacer, pacer,
			err)
		if !isDamage(err) {
			return nil, err // a later read may succeed
		}
		e.damage = err
		l.db.NotePacerUnreadable(e.key, err)
	}
	l.cache.put(e)
	return e, e.damage
}

// The method "record" writes the logs with the granted permits and the remembered request to the database. Later calls
// see the writes of the method "record" immediately, but the writes become durable only with the next sync.
func (l *pacerLogs) record(now pacing.Time, ask *pacing.Ask, placed *pacing.Placed, entries []*entry) {
	batch := l.db.NewBatch()
	defer batch.Close()
	merged := false
	for i, e := range entries {
		limits := ask.Targets[i].Limits
		if len(e.log.Runs) > pacing.MostRuns {
			e.log.Merge(now, limits)
			e.clear(batch)
			merged = true
		}
		newest, _ := e.log.Newest()
		e.keep = max(e.keep, newest.Add(pacing.KeepFor(limits)))
		e.write(batch)
		l.cache.weigh(e)
	}
	if merged { // the merge of a log may have moved the next slot
		next := pacing.Place(now, &pacing.Ask{Targets: ask.Targets}, logsOf(entries))
		placed.Next, placed.Target, placed.Limit = next.Next, next.Target, next.Limit
	}
	if ask.Request != (pacing.Request{}) {
		remember(batch, now, ask, placed)
	}
	l.db.Commit(batch)
}
