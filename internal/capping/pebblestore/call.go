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

// step decides one user of a call: it sets the call's answer for the index
// and, when the log changes, returns dst with the entries of what it becomes
// appended; without any, the log is removed.
type step func(now capping.Instant, index int, log capping.Log, dst []byte) (value []byte, changed bool)

// counting is what a call counts beside the logs; the zero value is nothing.
type counting struct {
	lives Lives
	// tally counts what became of a user's log that changed.
	tally func(t *Tally, before, after capping.Log)
}

// call is one Filter, Release or Merge under way. It works on copies, as its caller
// may have given up waiting and use its slices for something else.
type call struct {
	plan     plan
	portions []portion
	next     atomic.Int32 // the portion to do next
	step     step
	counting counting
	passing  bool // over logs that nobody asked for: they do not enter the cache
	verdicts []capping.Verdict
	released []capping.Released
	merged   []capping.Merged
	groups   []uint8

	failures sync.Mutex
	err      error // why users are unavailable, the first reason
}

func (c *call) begin(users []capping.UserID, step step) {
	c.plan.arrange(users)
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

// run does all portions of the call, in parallel when there are several. Its
// error means that nothing of the call may be believed.
func (s *Store) run(ctx context.Context, c *call) error {
	part := trace.Of(ctx).Part("judge and write")
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

// doPortions does portions until none is left, the deadline has passed or the store is
// broken. run reports the latter two.
func (s *Store) doPortions(ctx context.Context, c *call) {
	w := s.workers.Get().(*worker)
	err := s.db.Rescue(ctx, func() error {
		for i := c.takePortion(); i < len(c.portions) && ctx.Err() == nil && s.db.Broken() == nil; i = c.takePortion() {
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

// worker is the buffers of a goroutine, which it uses again and again.
type worker struct {
	reader  database.Reader
	scratch []byte // the log that is being written
	tally   Tally
}

// log is the user's log, empty when there is none, and whether it is from the
// cache. It is valid until the next call or the cache's next Put.
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

// decidePortion does one portion under its locks. The writes are visible to later
// calls, and durable not yet, when the locks are given back.
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

// decideUser does one user, packed as in plan.
func (s *Store) decideUser(ctx context.Context, c *call, w *worker, batch *pebble.Batch, now capping.Instant,
	packed uint64) {
	user, index := capping.UserID(packed>>32), int(uint32(packed))
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
			c.counting.tally(&w.tally, log, next) // log is gone with the next line
		}
		if cached || !c.passing {
			cache.Put(user, next)
		}
		s.put(batch, user, value)
	case !cached:
		cache.Put(user, log)
	}
}

// put makes value, which was begun with beginLog, the user's in the batch.
func (s *Store) put(batch *pebble.Batch, user capping.UserID, value []byte) {
	if len(value) <= logHeader {
		value = nil
	}
	s.db.Put(batch, user, value)
}
