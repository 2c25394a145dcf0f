package pebblestore

import (
	"container/list"
	"strings"
)

// A pacerCache holds the most recently used logs of pacers in memory. The cache may drop any log at any time, because
// the database also has the log.
type pacerCache struct {
	most   int // approximate largest size in bytes
	used   int
	logs   map[string]*list.Element // elements of *entry, by key
	recent *list.List               // most recently used log first
}

// cacheBytes is the maximum memory for cached logs of pacers: enough for all logs of a few hundred pacers.
const cacheBytes = 32 << 20

// These constants are the approximate memory of one run of permits and of one pacer's log, in bytes.
const (
	runBytes   = 32
	entryBytes = 400
)

func newPacerCache(most int) pacerCache {
	return pacerCache{most: most, logs: make(map[string]*list.Element), recent: list.New()}
}

// The method "entry" returns the cached log of the pacer with the key, or nil if the log is not cached.
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

// The method "weigh" computes the size of the pacer's log again and updates the size of the cache.
func (c *pacerCache) weigh(e *entry) {
	c.used -= e.weight
	e.weight = entryBytes + runBytes*(cap(e.log.Runs)+cap(e.log.Ahead))
	c.used += e.weight
}

// The method "shrink" drops the least recently used logs of pacers while the cache is too large.
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

// The method "drop" removes the logs of pacers whose keys begin with the prefix from the cache.
func (c *pacerCache) drop(prefix []byte) {
	for key, element := range c.logs {
		if strings.HasPrefix(key, string(prefix)) {
			c.remove(element)
		}
	}
}
