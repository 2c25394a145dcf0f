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
)

// step decides one user of a call: it sets the call's answer for the index
// and, when the log changes, returns what it becomes, appended to dst.
type step func(now capping.Instant, index int, log capping.Log, dst []byte) (next capping.Log, changed bool)

// call is one Filter or Release under way. It works on copies, as its caller
// may have given up waiting and use its slices for something else.
type call struct {
	order    order
	chunks   []chunk
	next     atomic.Int32 // the chunk to do next
	step     step
	verdicts []capping.Verdict
	released []capping.Released
	groups   []uint8

	failures sync.Mutex
	err      error // why users are unavailable, the first reason
}

func (c *call) begin(users []capping.UserID, step step) {
	c.order.sort(users)
	c.chunks = c.order.chunks(c.chunks[:0])
	c.next.Store(0)
	c.step = step
	c.err = nil
}

func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func (c *call) failed(err error) {
	c.failures.Lock()
	defer c.failures.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// writing runs work that writes and waits for it until the deadline of ctx or
// the store's outage.
func (s *Store) writing(ctx context.Context, work func() error) error {
	if err := s.broken(); err != nil {
		return err
	}
	return s.within(ctx, s.writes, s.down, work)
}

// reading is writing for work that does not write: it still runs when the disk
// has refused a write.
func (s *Store) reading(ctx context.Context, work func() error) error {
	if s.ruined.Load() {
		return s.broken()
	}
	return s.within(ctx, s.reads, s.wrecked, work)
}

// within runs work when there is a slot. Work that has begun and that nobody
// waits for any more ends on its own, soon after it sees why.
func (s *Store) within(ctx context.Context, slots chan struct{}, outage <-chan struct{}, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case slots <- struct{}{}:
	case <-outage:
		return s.broken()
	case <-ctx.Done():
		return ctx.Err()
	}
	result := make(chan error, 1)
	s.running.Go(func() {
		defer func() { <-slots }()
		result <- s.rescued(work)
	})
	select {
	case err := <-result:
		return err
	case <-outage:
		return s.broken()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run does all chunks of the call, in parallel when there are several. Its
// error means that nothing of the call may be believed.
func (s *Store) run(ctx context.Context, c *call) error {
	if workers := min(runtime.GOMAXPROCS(0), len(c.chunks)); workers > 1 {
		var all sync.WaitGroup
		for range workers {
			all.Go(func() { s.work(ctx, c) })
		}
		all.Wait()
	} else {
		s.work(ctx, c)
	}
	return errors.Join(ctx.Err(), s.broken())
}

// work does chunks until none is left, the deadline has passed or the store is
// broken. run reports the latter two.
func (s *Store) work(ctx context.Context, c *call) {
	w := s.workers.Get().(*worker)
	err := s.rescued(func() error {
		for i := c.take(); i < len(c.chunks) && ctx.Err() == nil && s.broken() == nil; i = c.take() {
			s.decide(c, c.chunks[i], w)
		}
		return nil
	})
	if err != nil {
		c.failed(err)
		return
	}
	s.workers.Put(w)
}

func (c *call) take() int { return int(c.next.Add(1)) - 1 }

// worker is the buffers of a goroutine, which it uses again and again.
type worker struct {
	reader  reader
	scratch []byte // the log that is being written
}

// decide does one chunk under its locks. The writes are visible to later
// calls, and durable not yet, when the locks are given back.
func (s *Store) decide(c *call, k chunk, w *worker) {
	users := c.order.in(k)
	s.lockStripes(c, k)
	defer s.unlockStripes(c, k)
	now, err := s.now()
	if err != nil {
		c.failed(err)
		return
	}
	defer w.reader.end()
	batch := s.db.NewBatch()
	defer batch.Close()
	for _, packed := range users {
		s.decideUser(c, w, batch, now, packed)
	}
	if !batch.Empty() {
		s.commit(batch)
	}
}

// decideUser does one user, packed as in order.
func (s *Store) decideUser(c *call, w *worker, batch *pebble.Batch, now capping.Instant, packed uint64) {
	user, index := capping.UserID(packed>>32), int(uint32(packed))
	cache := s.cacheOf(user)
	log, cached, err := w.reader.log(cache, user)
	if err != nil {
		s.unreadable(c, user, err)
		return
	}
	next, changed := c.step(now, index, log, w.scratch[:0])
	switch {
	case changed:
		w.scratch = next
		cache.put(user, next)
		putLog(batch, user, next)
		s.mend(batch, user, next)
	case !cached:
		cache.put(user, log)
	}
}

func (s *Store) lockStripes(c *call, k chunk) {
	for i := k.first; i < k.last; i++ {
		if c.order.starts[i] < c.order.starts[i+1] {
			s.stripes[i].Lock()
		}
	}
}

func (s *Store) unlockStripes(c *call, k chunk) {
	for i := k.first; i < k.last; i++ {
		if c.order.starts[i] < c.order.starts[i+1] {
			s.stripes[i].Unlock()
		}
	}
}

// commit makes the batch visible, and not yet durable.
func (s *Store) commit(batch *pebble.Batch) {
	if err := batch.Commit(pebble.NoSync); err != nil {
		_ = s.fail(err) // run reports it
	}
	s.written.Add(1)
}

// putLog makes log the user's in the batch.
func putLog(batch *pebble.Batch, user capping.UserID, log capping.Log) {
	if len(log) == 0 {
		op := batch.DeleteDeferred(logKeySize)
		putLogKey(op.Key, user)
		_ = op.Finish() // fails only for indexed batches
		return
	}
	op := batch.SetDeferred(logKeySize, len(log))
	putLogKey(op.Key, user)
	copy(op.Value, log)
	_ = op.Finish()
}

// unreadable leaves one user undecided.
func (s *Store) unreadable(c *call, user capping.UserID, err error) {
	s.metrics.errors.WithLabelValues("log").Inc()
	if _, damaged := s.damaged.block(user); !damaged && s.damaged.add(user, err) {
		s.logger.Error("a log cannot be read; erasing the user makes it new", "user", user, "error", err.Error())
	}
	c.failed(fmt.Errorf("log of user %d: %w", user, err))
}

// sync returns when everything that was committed before is durable. Calls
// that sync at the same time share one write to the disk.
func (s *Store) sync() error {
	written := s.written.Load()
	if s.synced.Load() >= written {
		return s.broken()
	}
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return s.fail(err)
	}
	if err := s.broken(); err != nil {
		return err
	}
	for {
		synced := s.synced.Load()
		if synced >= written || s.synced.CompareAndSwap(synced, written) {
			return nil
		}
	}
}
