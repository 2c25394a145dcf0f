package audience

import (
	"container/list"
	"context"
	"sync"
)

// countKey names an audience.
type countKey struct{ generation, expression string }

// countCache keeps the counts of the audiences asked for last, up to so many bytes. Who asks
// for what somebody else is counting waits for it.
type countCache struct {
	mu      sync.Mutex
	left    int // bytes
	entries map[countKey]*list.Element
	recent  *list.List // of *counted, the last used first
	running map[countKey]*counting
}

type counted struct {
	key    countKey
	counts []uint32
}

// sizeBytes is what an entry takes, with what leads to it.
func (c *counted) sizeBytes() int {
	return 4*len(c.counts) + len(c.key.generation) + len(c.key.expression) + 256
}

// counting is a count that is under way.
type counting struct {
	done   chan struct{}
	counts []uint32
	err    error
}

func newCountCache(sizeBytes int) *countCache {
	return &countCache{left: sizeBytes, entries: map[countKey]*list.Element{}, recent: list.New(),
		running: map[countKey]*counting{}}
}

// get is the counts of an audience, from count where they are not there. A count that
// failed, as its caller has gone, is tried again by who waits for it.
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

// begin is the counts that are there, or who is counting them; neither: the caller is to, with run.
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

// keep makes room for an entry, which is not there, and puts it in, where it fits at all.
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
