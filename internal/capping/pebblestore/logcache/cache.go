package logcache

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"capper/internal/capping"
)

// Cache keeps the logs of some users of one stripe, so that deciding needs
// no look into the database. It is written through: a log in it is the newest.
// It belongs to the holder of the stripe's lock.
//
// Records lie one behind the other in segments of one size; nothing in them is
// a pointer that the garbage collector would follow. When all segments are
// full the oldest is emptied, whatever is in it.
type Cache struct {
	// slots is a hash table with linear probing of 1 + the position of a
	// record, segment × segmentSize + offset; 0: free.
	slots    []uint32
	seed     uint32 // of the hash, so that no choice of ids meets in one slot
	users    int
	segments [][]byte
	most     int // segments
	current  int // the segment that is being filled
	used     int // bytes of it
}

const (
	segmentSize  = 32 << 10
	recordHeader = 6                      // user (4), entries (1), room for entries (1)
	cachedLog    = 60 * capping.EntrySize // longer logs are not cached
	roomStep     = 2                      // room grows by so many entries, so that most sends fit where the log is
)

// segmentsFor is how many segments fit into so many bytes, a sixth of which
// the slots take.
func segmentsFor(bytes int64) int {
	return int(max(1, min(bytes*5/6/segmentSize, 1<<32/segmentSize-1)))
}

// New is an empty cache of so many bytes.
func New(bytes int64) Cache { return newCache(segmentsFor(bytes)) }

func newCache(segments int) Cache {
	return Cache{most: segments, slots: make([]uint32, 16), seed: rand.Uint32()}
}

// Log is the user's log and whether it is cached. It is valid until the next Put.
func (c *Cache) Log(user capping.UserID) (capping.Log, bool) {
	slot, ok := c.find(user)
	if !ok {
		return nil, false
	}
	record := c.record(c.slots[slot])
	return capping.Log(record[recordHeader : recordHeader+int(record[4])*capping.EntrySize]), true
}

// record is the record of a slot's value.
func (c *Cache) record(slot uint32) []byte {
	at := slot - 1
	return c.segments[at/segmentSize][at%segmentSize:]
}

func userOf(record []byte) capping.UserID { return binary.LittleEndian.Uint32(record) }

// Put makes log the user's cached log. It copies. Empty and long logs are not
// cached: they leave the cache.
func (c *Cache) Put(user capping.UserID, log capping.Log) {
	if len(log) == 0 || len(log) > cachedLog {
		c.Drop(user)
		return
	}
	n := log.Len()
	if slot, ok := c.find(user); ok {
		if record := c.record(c.slots[slot]); int(record[5]) >= n {
			record[4] = byte(n)
			copy(record[recordHeader:], log)
			return
		}
	}
	room := (n + roomStep - 1) / roomStep * roomStep
	at := c.reserve(recordHeader + room*capping.EntrySize) // may drop records, also the user's old one
	record := c.record(at)
	binary.LittleEndian.PutUint32(record, user)
	record[4], record[5] = byte(n), byte(room)
	copy(record[recordHeader:], log)
	c.point(user, at)
}

// reserve finds room for a record of so many bytes.
func (c *Cache) reserve(size int) (slot uint32) {
	if len(c.segments) == 0 || c.used+size > segmentSize {
		c.advance()
	}
	at := uint32(c.current*segmentSize + c.used)
	c.used += size
	return at + 1
}

// advance begins a segment: a new one, or the oldest, emptied.
func (c *Cache) advance() {
	if len(c.segments) < c.most {
		c.segments = append(c.segments, make([]byte, segmentSize))
		c.current, c.used = len(c.segments)-1, 0
		return
	}
	c.current, c.used = (c.current+1)%len(c.segments), 0
	segment := c.segments[c.current]
	for at := 0; at+recordHeader <= segmentSize && segment[at+5] > 0; {
		if slot, ok := c.find(userOf(segment[at:])); ok && c.slots[slot] == uint32(c.current*segmentSize+at+1) {
			c.free(slot)
		}
		at += recordHeader + int(segment[at+5])*capping.EntrySize
	}
	clear(segment)
}

// find is the user's slot, or the free one where it would be.
func (c *Cache) find(user capping.UserID) (slot int, ok bool) {
	mask := len(c.slots) - 1
	for slot = c.home(user); c.slots[slot] != 0; slot = (slot + 1) & mask {
		if userOf(c.record(c.slots[slot])) == user {
			return slot, true
		}
	}
	return slot, false
}

func (c *Cache) home(user capping.UserID) int {
	mixed := user ^ c.seed
	mixed = (mixed ^ mixed>>16) * 0x45d9f3b
	mixed = (mixed ^ mixed>>16) * 0x45d9f3b
	return int(mixed >> (33 - bits.Len(uint(len(c.slots)))))
}

// point makes the user's slot point to a record.
func (c *Cache) point(user capping.UserID, at uint32) {
	slot, ok := c.find(user)
	if !ok {
		if c.users++; c.users > len(c.slots)/4*3 {
			c.grow()
			slot, _ = c.find(user)
		}
	}
	c.slots[slot] = at
}

func (c *Cache) grow() {
	old := c.slots
	c.slots = make([]uint32, 2*len(old))
	for _, at := range old {
		if at != 0 {
			slot, _ := c.find(userOf(c.record(at)))
			c.slots[slot] = at
		}
	}
}

// Drop forgets the user's log.
func (c *Cache) Drop(user capping.UserID) {
	if slot, ok := c.find(user); ok {
		c.free(slot)
	}
}

// free empties a slot and moves later ones of its run up, so that no search
// ends too early.
func (c *Cache) free(slot int) {
	c.users--
	mask := len(c.slots) - 1
	for next := (slot + 1) & mask; c.slots[next] != 0; next = (next + 1) & mask {
		home := c.home(userOf(c.record(c.slots[next])))
		if (next-home)&mask >= (next-slot)&mask { // home is at or before the free slot
			c.slots[slot], slot = c.slots[next], next
		}
	}
	c.slots[slot] = 0
}
