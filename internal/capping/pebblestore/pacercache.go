package pebblestore

import (
	"container/list"
	"strings"
)

// cache keeps the logs that were used last. What is in it is committed, so that
// any of them may be dropped at any time.
type pacerCache struct {
	most   int // bytes, about
	used   int
	logs   map[string]*list.Element // of *entry, by key
	recent *list.List               // the one used last is the first
}

// cacheBytes bounds the logs in memory: all of a few hundred pacers, whatever is in
// them.
const cacheBytes = 32 << 20

// What a run and a log take in memory, about.
const (
	runBytes   = 32
	entryBytes = 400
)

func newPacerCache(most int) pacerCache {
	return pacerCache{most: most, logs: make(map[string]*list.Element), recent: list.New()}
}

// entry is the log with the key; nil: it is not in memory.
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

// weigh counts what the log takes.
func (c *pacerCache) weigh(e *entry) {
	c.used -= e.weight
	e.weight = entryBytes + runBytes*cap(e.log.Runs)
	c.used += e.weight
}

// shrink drops the logs that were not used for the longest time, while there are too many.
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

// drop drops the logs whose keys begin with the prefix.
func (c *pacerCache) drop(prefix []byte) {
	for key, element := range c.logs {
		if strings.HasPrefix(key, string(prefix)) {
			c.remove(element)
		}
	}
}
