package pebblestore

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"capper/internal/capping"
)

// A logCache holds the logs of some users of one stripe (group of users with a common lock). Decisions about users in
// the cache need no database read. Every write of a log also updates the cache, so a cached log is always the newest
// log of the user. Only the goroutine that holds the stripe's lock may use the cache.
//
// The cached logs (items) are stored one after another in slabs (byte slices of equal size). Slabs (byte slices with
// logs) contain no pointers, so the garbage collector does not scan them. If all slabs (byte slices with logs) are
// full, the cache empties and reuses the oldest slab.
type logCache struct {
	// The field "slots" is a hash table with linear probing, from users to their cached logs. The value of a slot is 1
	// + the position of a cached log (slab × slabSize + offset). The value 0 means a free slot.
	slots   []uint32
	seed    uint32 // seed of the hash, so that chosen ids cannot all collide
	users   int
	slabs   [][]byte
	most    int // largest number of slabs
	current int // index of the slab that is being filled
	used    int // used bytes of the current slab
	wide    bool
}

const (
	slabSize   = 32 << 10
	itemHeader = 6                      // number of entries (1), capacity in entries (1), dense user (4)
	wideHeader = 10                     // the same with an id image (8) instead of the dense user
	cachedLog  = 60 * capping.EntrySize // longer logs are not cached
	roomStep   = 2                      // step of the capacity in entries, so that most sends do not move the item
)

// slabsFor returns the number of slabs (byte slices of equal size) in a cache of the given size in bytes. The hash
// table of the cache takes a sixth of the cache's bytes.
func slabsFor(bytes int64) int {
	return int(max(1, min(bytes*5/6/slabSize, 1<<32/slabSize-1)))
}

// newLogCache returns an empty cache of logs that takes the given number of bytes.
func newLogCache(bytes int64, wide bool) logCache { return newLogCacheOf(slabsFor(bytes), wide) }

// newLogCacheOf returns an empty cache of logs with at most the given number of slabs (byte slices of equal size). The
// argument "wide" of newLogCacheOf is true if users are id images (64-bit numbers that stand for ids).
func newLogCacheOf(slabs int, wide bool) logCache {
	return logCache{most: slabs, slots: make([]uint32, 16), seed: rand.Uint32(), wide: wide}
}

// The method "header" returns the number of bytes before the log entries in an item (a cached log).
func (c *logCache) header() int {
	if c.wide {
		return wideHeader
	}
	return itemHeader
}

// The method Log returns the user's log from the cache, and reports whether the cache has the log. The returned log is
// valid only until the next call of Put for this cache.
func (c *logCache) Log(user capping.UserID) (capping.Log, bool) {
	slot, ok := c.find(user)
	if !ok {
		return nil, false
	}
	item, header := c.item(c.slots[slot]), c.header()
	return capping.Log(item[header : header+int(item[0])*capping.EntrySize]), true
}

// The method "item" returns the bytes of a cached log. The argument "slot" of the method "item" is the value of the
// log's slot in the hash table.
func (c *logCache) item(slot uint32) []byte {
	at := slot - 1
	return c.slabs[at/slabSize][at%slabSize:]
}

func (c *logCache) userOf(item []byte) capping.UserID {
	if c.wide {
		return capping.UserID(binary.LittleEndian.Uint64(item[2:]))
	}
	return capping.UserID(binary.LittleEndian.Uint32(item[2:]))
}

// The method Put stores a copy of the log as the user's cached log. If the log is empty or too long, Put only removes
// the user's old log from the cache.
func (c *logCache) Put(user capping.UserID, log capping.Log) {
	if len(log) == 0 || len(log) > cachedLog {
		c.Drop(user)
		return
	}
	n, header := log.Len(), c.header()
	if slot, ok := c.find(user); ok {
		if item := c.item(c.slots[slot]); int(item[1]) >= n {
			item[0] = byte(n)
			copy(item[header:], log)
			return
		}
	}
	room := (n + roomStep - 1) / roomStep * roomStep
	at := c.reserve(header + room*capping.EntrySize) // may drop items, including the user's old item
	item := c.item(at)
	item[0], item[1] = byte(n), byte(room)
	if c.wide {
		binary.LittleEndian.PutUint64(item[2:], uint64(user))
	} else {
		binary.LittleEndian.PutUint32(item[2:], capping.Dense(user))
	}
	copy(item[header:], log)
	c.setSlot(user, at)
}

// The method "reserve" allocates space for an item of the given size in a slab of the cache. The result of the method
// "reserve" is the value for the log's slot in the hash table.
func (c *logCache) reserve(size int) (slot uint32) {
	if len(c.slabs) == 0 || c.used+size > slabSize {
		c.beginSlab()
	}
	at := uint32(c.current*slabSize + c.used)
	c.used += size
	return at + 1
}

// beginSlab makes space in the cache: beginSlab starts a new slab or, if all slabs are in use, empties the oldest slab.
func (c *logCache) beginSlab() {
	if len(c.slabs) < c.most {
		c.slabs = append(c.slabs, make([]byte, slabSize))
		c.current, c.used = len(c.slabs)-1, 0
		return
	}
	c.current, c.used = (c.current+1)%len(c.slabs), 0
	slab := c.slabs[c.current]
	header := c.header()
	for at := 0; at+header <= slabSize && slab[at+1] > 0; {
		if slot, ok := c.find(c.userOf(slab[at:])); ok && c.slots[slot] == uint32(c.current*slabSize+at+1) {
			c.freeSlot(slot)
		}
		at += header + int(slab[at+1])*capping.EntrySize
	}
	clear(slab)
}

// The method "find" returns the position of the user in the hash table of the cache. For a user who is not in the
// cache, "find" returns the free slot of the table where the user would be.
func (c *logCache) find(user capping.UserID) (slot int, ok bool) {
	mask := len(c.slots) - 1
	for slot = c.home(user); c.slots[slot] != 0; slot = (slot + 1) & mask {
		if c.userOf(c.item(c.slots[slot])) == user {
			return slot, true
		}
	}
	return slot, false
}

func (c *logCache) home(user capping.UserID) int {
	mixed := uint32(user^user>>32) ^ c.seed
	mixed = (mixed ^ mixed>>16) * 0x45d9f3b
	mixed = (mixed ^ mixed>>16) * 0x45d9f3b
	return int(mixed >> (33 - bits.Len(uint(len(c.slots)))))
}

// setSlot sets the value of the user's slot in the hash table to the position of the cached log.
func (c *logCache) setSlot(user capping.UserID, at uint32) {
	slot, ok := c.find(user)
	if !ok {
		if c.users++; c.users > len(c.slots)/4*3 {
			c.grow()
			slot, _ = c.find(user)
		}
	}
	c.slots[slot] = at
}

func (c *logCache) grow() {
	old := c.slots
	c.slots = make([]uint32, 2*len(old))
	for _, at := range old {
		if at != 0 {
			slot, _ := c.find(c.userOf(c.item(at)))
			c.slots[slot] = at
		}
	}
}

// The method Drop removes the user's log from the cache.
func (c *logCache) Drop(user capping.UserID) {
	if slot, ok := c.find(user); ok {
		c.freeSlot(slot)
	}
}

// freeSlot frees one slot of the hash table with linear probing. The method freeSlot moves the following slots up, so
// that no search ends too early.
func (c *logCache) freeSlot(slot int) {
	c.users--
	mask := len(c.slots) - 1
	for next := (slot + 1) & mask; c.slots[next] != 0; next = (next + 1) & mask {
		home := c.home(c.userOf(c.item(c.slots[next])))
		if (next-home)&mask >= (next-slot)&mask { // home is at or before the free slot
			c.slots[slot], slot = c.slots[next], next
		}
	}
	c.slots[slot] = 0
}
