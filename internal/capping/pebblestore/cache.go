package pebblestore

import (
	"encoding/binary"

	"capper/internal/capping"
)

// logCache keeps the logs of some users of one stripe, so that deciding needs
// no look into the database. It is written through: a log in it is the newest.
// It belongs to the holder of the stripe's lock.
//
// Logs lie in segments of one size without pointers for the garbage collector
// to follow. A new log goes behind the last one; when all segments are full
// the oldest is emptied, whatever is in it.
type logCache struct {
	index    map[capping.UserID]uint32 // where the user's record begins: segment × segmentSize + offset
	segments [][]byte
	most     int // segments
	current  int // the segment that is being filled
	used     int // bytes of it
}

const (
	segmentSize  = 32 << 10
	recordHeader = 8        // user (4), length (2), capacity (2)
	cachedLog    = 60 * 12  // longer logs are not cached
	roundTo      = 2 * 12   // capacity grows by two entries at a time, so that most sends fit where the log is
	indexShare   = 5.0 / 10 // of a segment: what its users take in the index
)

// segmentsFor is how many segments fit into so many bytes, the index included.
func segmentsFor(bytes int64) int {
	return max(1, min(int(float64(bytes)/(segmentSize*(1+indexShare))), 1<<32/segmentSize))
}

func newLogCache(segments int) logCache {
	return logCache{index: make(map[capping.UserID]uint32), most: segments}
}

// log is the user's log and whether it is cached. It is valid until the next put.
func (c *logCache) log(user capping.UserID) (capping.Log, bool) {
	at, ok := c.index[user]
	if !ok {
		return nil, false
	}
	record := c.record(at)
	return capping.Log(record[recordHeader : recordHeader+length(record)]), true
}

func (c *logCache) record(at uint32) []byte { return c.segments[at/segmentSize][at%segmentSize:] }

func length(record []byte) int   { return int(binary.LittleEndian.Uint16(record[4:])) }
func capacity(record []byte) int { return int(binary.LittleEndian.Uint16(record[6:])) }

// put makes log the user's cached log. It copies. Empty and long logs are not
// cached: they leave the cache.
func (c *logCache) put(user capping.UserID, log capping.Log) {
	if len(log) == 0 || len(log) > cachedLog {
		c.drop(user)
		return
	}
	if at, ok := c.index[user]; ok {
		if record := c.record(at); capacity(record) >= len(log) {
			binary.LittleEndian.PutUint16(record[4:], uint16(len(log)))
			copy(record[recordHeader:], log)
			return
		}
	}
	room := (len(log) + roundTo - 1) / roundTo * roundTo
	at := c.reserve(recordHeader + room)
	record := c.record(at)
	binary.LittleEndian.PutUint32(record, user)
	binary.LittleEndian.PutUint16(record[4:], uint16(len(log)))
	binary.LittleEndian.PutUint16(record[6:], uint16(room))
	copy(record[recordHeader:], log)
	c.index[user] = at
}

func (c *logCache) drop(user capping.UserID) { delete(c.index, user) }

// reserve finds room for a record of so many bytes.
func (c *logCache) reserve(size int) uint32 {
	if len(c.segments) == 0 || c.used+size > segmentSize {
		c.advance()
	}
	at := uint32(c.current*segmentSize + c.used)
	c.used += size
	return at
}

// advance begins a segment: a new one, or the oldest, emptied.
func (c *logCache) advance() {
	if len(c.segments) < c.most {
		c.segments = append(c.segments, make([]byte, segmentSize))
		c.current, c.used = len(c.segments)-1, 0
		return
	}
	c.current, c.used = (c.current+1)%len(c.segments), 0
	segment := c.segments[c.current]
	for at := 0; at+recordHeader <= segmentSize; {
		record := segment[at:]
		user, room := binary.LittleEndian.Uint32(record), capacity(record)
		if room == 0 {
			break // the rest was never filled
		}
		if c.index[user] == uint32(c.current*segmentSize+at) {
			delete(c.index, user)
		}
		at += recordHeader + room
	}
	clear(segment)
}
