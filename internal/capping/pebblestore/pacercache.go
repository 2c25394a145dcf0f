package pebblestore

import (
	"container/list"
	"strings"
)

// pacerCache holds the most recently used logs of pacers in memory. Every log in the cache is committed, so the cache
// may drop any log at any time.
type pacerCache struct {
	most   int // approximate largest size in bytes
	used   int
	logs   map[string]*list.Element // elements of *entry, by key
	recent *list.List               // most recently used log first
}

// cacheBytes is the maximum memory of cached pacer logs. cacheBytes is enough for all logs of a few hundred pacers,
// whatever the logs contain.
const cacheBytes = 32 << 20

// The approximate memory in bytes of a run and of a log.
const (
	runBytes   = 32
	entryBytes = 400
)

func newPacerCache(most int) pacerCache {
	return pacerCache{most: most, logs: make(map[string]*list.Element), recent: list.New()}
}

// entry returns the cached log with the key, or nil if the log is not cached.
func (c *pacerCache) entry(key []byte) *entry {
	element := c.logs[string(key)]
	if element == nil {
		return nil
	}
	c.recent.MoveToFront(element)
	return element.Value.(*entry)
}

func (c *pacerCache) put(e *entry) {
	c.logs[e.key] = c.recent.PushFront(e)
	c.weigh(e)
}

// weigh updates the sizes of the log and of the cache.
func (c *pacerCache) weigh(e *entry) {
	c.used -= e.weight
	e.weight = entryBytes + runBytes*(cap(e.log.Runs)+cap(e.log.Ahead))
	c.used += e.weight
}

// shrink drops the least recently used logs while the cache is too large.
func (c *pacerCache) shrink() {
	for c.used > c.most {
		c.remove(c.recent.Back())
	}
}

func (c *pacerCache) remove(element *list.Element) {
	e := c.recent.Remove(element).(*entry)
	delete(c.logs, e.key)
	c.used -= e.weight
}

// drop drops the logs whose keys begin with the prefix from the cache.
func (c *pacerCache) drop(prefix []byte) {
	for key, element := range c.logs {
		if strings.HasPrefix(key, string(prefix)) {
			c.remove(element)
		}
	}
}
