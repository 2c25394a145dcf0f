package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/trace"
)

// A step is a function that decides about one user of a call and stores the result at the user's index in the call. If
// the user's log changes, the step function appends the entries of the new log to dst. If the user's log changes, the
// step function returns the extended dst, and true as the result "changed". If the new log has no entries, the store
// removes the user's log.
type step func(now capping.Instant, index int, log capping.Log, dst []byte) (value []byte, changed bool)

// The type "counting" describes the message counts that a call changes in one step with the users' logs. The zero value
// of the type "counting" changes no counts.
type counting struct {
	lives Lives
	// The function "tally" adds the change of one user's log to the counts in t.
	tally func(t *Tally, before, after capping.Log)
}

// A call is a running call of the store's method Filter, Release or Merge, or background work on logs. The store works
// on copies of the call's arguments, because the caller may stop waiting and reuse the slices.
type call struct {
	plan     plan
	portions []portion
	next     atomic.Int32 // index of the next portion to decide
	step     step
	counting counting
	passing  bool // do not add the logs of this call to the cache, because no API call needs them
	verdicts []capping.Verdict
	released []capping.Released
	merged   []capping.Merged
	groups   []uint8

	failures sync.Mutex
	err      error // the first error that made users unavailable
}

func (c *call) begin(users []capping.UserID, r runs, step step) {
	c.plan.arrange(users, r)
	c.portions = c.plan.portions(c.portions[:0])
	c.next.Store(0)
	c.step = step
	c.counting = counting{}
	c.passing = false
	c.err = nil
}

func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func (c *call) noteError(err error) {
	c.failures.Lock()
	defer c.failures.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// The method "run" decides about all users of a call, in several groups (portions) at the same time. If "run" returns
// an error, no result of the call is valid.
func (s *Store) run(ctx context.Context, c *call) error {
	_, part := trace.Start(ctx, "judge and write")
	defer part.End()
	if workers := min(runtime.GOMAXPROCS(0), len(c.portions)); workers > 1 {
		var all sync.WaitGroup
		for range workers {
			all.Go(func() { s.doPortions(ctx, c) })
		}
		all.Wait()
	} else {
		s.doPortions(ctx, c)
	}
	return errors.Join(ctx.Err(), s.db.Broken())
}

// doPortions decides about one portion of the call's users after another. The method doPortions ends when no portion is
// left, the deadline has passed, the caller has left or the database is out of service. If the deadline has passed or
// the database is out of service, the method "run" returns the error.
func (s *Store) doPortions(ctx context.Context, c *call) {
	w := s.workers.Get().(*worker)
	err := s.db.Rescue(ctx, func() error {
		for i := c.takePortion(); i < len(c.portions) && ctx.Err() == nil && s.db.Broken() == nil; i = c.takePortion() {
			if err := capping.CheckCaller(ctx); err != nil {
				c.noteError(err)
				break
			}
			s.decidePortion(ctx, c, c.portions[i], w)
		}
		return nil
	})
	if err != nil {
		c.noteError(err)
		return
	}
	s.workers.Put(w)
}

func (c *call) takePortion() int { return int(c.next.Add(1)) - 1 }

// A worker holds the buffers of one goroutine for decisions about users. Later calls reuse the buffers of a worker.
type worker struct {
	reader  database.Reader
	scratch []byte // the new log that is being built
	tally   Tally
}

// The method "log" returns the user's log, or an empty log, and reports whether the log was in the cache. The returned
// log is valid until the next call of the method "log" or the next Put of the cache.
func (w *worker) log(cache *logCache, user capping.UserID) (log capping.Log, cached bool, err error) {
	if log, ok := cache.Log(user); ok {
		return log, true, nil
	}
	value, err := w.reader.Value(user)
	if err != nil || value == nil {
		return nil, false, err
	}
	log, _, err = decodeLog(value)
	return log, false, err
}

// decidePortion decides about one portion of the call's users, under the locks of the portion's stripes (groups of
// users with a common lock). After the release of the locks, later calls see the writes of decidePortion, although the
// writes may not be durable yet.
func (s *Store) decidePortion(ctx context.Context, c *call, p portion, w *worker) {
	users := c.plan.sortPortion(p)
	s.lockStripes(c, p)
	defer s.unlockStripes(c, p)
	now, err := s.db.Now()
	if err != nil {
		c.noteError(err)
		return
	}
	defer w.reader.End()
	batch := s.db.NewBatch()
	defer batch.Close()
	w.tally = w.tally[:0]
	for _, packed := range users {
		s.decideUser(ctx, c, w, batch, now, packed)
	}
	if !batch.Empty() {
		s.counts.Count(batch, &s.stripes[p.first].counted, byte(p.first), c.counting.lives, w.tally)
		s.db.Commit(batch)
	}
}

// decideUser decides about one user of the call. The argument "packed" of decideUser is the user's element in the plan
// (sorted list of the call's users).
func (s *Store) decideUser(ctx context.Context, c *call, w *worker, batch *pebble.Batch, now capping.Instant,
	packed uint64) {
	user, index := c.plan.user(packed)
	cache := s.cacheOf(user)
	log, cached, err := w.log(cache, user)
	if err != nil {
		s.db.NoteUnreadable(ctx, user, err)
		c.noteError(fmt.Errorf("log of user %d: %w", user, err))
		return
	}
	value, changed := c.step(now, index, log, beginLog(w.scratch[:0]))
	switch next := entriesOf(value); {
	case changed:
		w.scratch = value
		if c.counting.lives != nil {
			c.counting.tally(&w.tally, log, next) // log becomes invalid in the next line
		}
		if cached || !c.passing {
			cache.Put(user, next)
		}
		s.put(batch, user, value)
	case !cached:
		cache.Put(user, log)
	}
}

// The method "put" adds the user's new log to the database batch. If the new log has no entries, "put" adds a removal
// of the user's log to the batch. The argument "value" of the method "put" must begin with the format version from
// beginLog.
func (s *Store) put(batch *pebble.Batch, user capping.UserID, value []byte) {
	if len(value) <= logHeader {
		value = nil
	}
	s.db.Put(batch, user, value)
}
