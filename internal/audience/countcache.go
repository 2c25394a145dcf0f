package audience

import (
	"container/list"
	"context"
	"sync"
)

// countKey identifies an audience in the cache of counts, by the expression and the name of the generation (published
// version).
type countKey struct{ generation, expression string }

// countCache caches the number of users in each block (65,536 neighbouring numbers) for recently used audiences, up to
// a limit in bytes. If several goroutines request the counts of one audience at the same time, one goroutine counts the
// users, and the others wait.
type countCache struct {
	mu      sync.Mutex
	left    int // free bytes
	entries map[countKey]*list.Element
	recent  *list.List // list of *counted, the last used entry first
	running map[countKey]*counting
}

type counted struct {
	key    countKey
	counts []uint32
}

// sizeBytes returns the memory of a cache entry in bytes, including the entry's place in the cache's index.
func (c *counted) sizeBytes() int {
	return 4*len(c.counts) + len(c.key.generation) + len(c.key.expression) + 256
}

// The type "counting" represents the user counts of an audience that a goroutine is computing.
type counting struct {
	done   chan struct{}
	counts []uint32
	err    error
}

func newCountCache(sizeBytes int) *countCache {
	return &countCache{left: sizeBytes, entries: map[countKey]*list.Element{}, recent: list.New(),
		running: map[countKey]*counting{}}
}

// The method "get" returns the user counts of an audience from the cache. If the cache lacks the counts, the method
// "get" calls the function "count". If counting fails, for example because a caller was cancelled, one of the waiting
// callers counts again.
func (c *countCache) get(ctx context.Context, key countKey, count func() ([]uint32, error)) ([]uint32, error) {
	for {
		counts, other := c.begin(key)
		switch {
		case counts != nil:
			return counts, nil
		case other == nil:
			return c.run(key, count)
		}
		select {
		case <-other.done:
			if other.err == nil {
				return other.counts, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// The method "begin" returns the cached counts of an audience, or the running computation of another goroutine. If both
// results of "begin" are nil, the caller must call the method "run", which computes the counts.
func (c *countCache) begin(key countKey) ([]uint32, *counting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		c.recent.MoveToFront(e)
		return e.Value.(*counted).counts, nil
	}
	other := c.running[key]
	if other == nil {
		c.running[key] = &counting{done: make(chan struct{})}
	}
	return nil, other
}

func (c *countCache) run(key countKey, count func() ([]uint32, error)) ([]uint32, error) {
	counts, err := count()
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.running[key]
	delete(c.running, key)
	own.counts, own.err = counts, err
	close(own.done)
	if err == nil {
		c.keep(&counted{key: key, counts: counts})
	}
	return counts, err
}

// The method "keep" adds a new entry to the cache, and evicts the least recently used entries until the cache is within
// its size limit. The cache does not keep an entry that is larger than the size limit.
func (c *countCache) keep(entry *counted) {
	c.entries[entry.key] = c.recent.PushFront(entry)
	c.left -= entry.sizeBytes()
	for c.left < 0 {
		last := c.recent.Back()
		gone := c.recent.Remove(last).(*counted)
		delete(c.entries, gone.key)
		c.left += gone.sizeBytes()
	}
}
