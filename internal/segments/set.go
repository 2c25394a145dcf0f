package segments

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
)

// Set collects user ids. The zero value is an empty set. It takes 2 MiB, and
// per chunk of 65,536 ids a list of 2 bytes per id, or 8 KiB once that is
// shorter: at most 514 MiB for ids over the whole space. Memory is bounded by the
// id space, not by the input.
//
// Writers and AddBitmap may be used by several goroutines at once; everything
// else needs exclusive use.
type Set struct {
	chunks [maxContainers]setChunk
	// Chunk k is guarded by shards[k % shardCount]: writers that sort their ids
	// into shards first touch little memory at a time and rarely wait.
	shards [shardCount]sync.Mutex
}

// setChunk is the ids of one chunk: a bitset, or while there are few a list, in
// any order and with repetitions.
type setChunk struct {
	bits *words
	list []uint16
}

// listMax is how many ids a list may hold.
const listMax = 2048

func (c *setChunk) add(low uint16) {
	if c.bits == nil {
		if len(c.list) < listMax {
			c.list = append(c.list, low)
			return
		}
		c.widen()
	}
	c.bits[low>>6] |= 1 << (low & 63)
}

// widen makes a bitset of the list.
func (c *setChunk) widen() {
	if c.bits == nil {
		c.bits = new(words)
		c.addTo(c.bits)
		c.list = nil
	}
}

// addTo sets the bits of the chunk's ids in w.
func (c *setChunk) addTo(w *words) {
	for _, low := range c.list {
		w[low>>6] |= 1 << (low & 63)
	}
	if c.bits != nil && c.bits != w {
		for i, x := range c.bits {
			w[i] |= x
		}
	}
}

// set makes w, which it copies, the chunk's ids.
func (c *setChunk) set(w *words) {
	*c = setChunk{}
	if n := w.count(); n > listMax/2 {
		c.bits = new(words)
		*c.bits = *w
	} else if n > 0 {
		for at := w.next(0, 0); at < chunkIDs; at = w.next(at+1, 0) {
			c.list = append(c.list, uint16(at))
		}
	}
}

func (c *setChunk) empty() bool {
	return len(c.list) == 0 && (c.bits == nil || *c.bits == words{})
}

const shardCount = 64

// shardOf names the shard of an id.
func shardOf(id uint32) int { return int(id >> 16 % shardCount) }

// Add puts one id into the set.
func (s *Set) Add(id uint32) { s.chunks[id>>16].add(uint16(id)) }

// addShard adds ids that all belong to one shard.
func (s *Set) addShard(shard int, ids []uint32) {
	s.shards[shard].Lock()
	defer s.shards[shard].Unlock()
	for _, id := range ids {
		s.Add(id)
	}
}

// A Writer adds ids to a Set; several writers may fill one set at once. Flush
// when done. A Writer itself is for one goroutine.
type Writer struct {
	set    *Set
	buffer [shardCount][]uint32
}

// writerBuffer is how many ids a Writer collects per shard before it takes the
// shard's lock: 4 KiB each, so that the buffers of one Writer stay in the L2 cache.
const writerBuffer = 1024

// NewWriter returns a writer to the set.
func (s *Set) NewWriter() *Writer { return &Writer{set: s} }

// Add puts ids into the set, at the latest with Flush.
func (w *Writer) Add(ids []uint32) {
	for _, id := range ids {
		shard := shardOf(id)
		b := w.buffer[shard]
		if b == nil {
			b = make([]uint32, 0, writerBuffer)
		}
		b = append(b, id)
		if len(b) == writerBuffer {
			w.set.addShard(shard, b)
			b = b[:0]
		}
		w.buffer[shard] = b
	}
}

// Flush puts everything that was added into the set.
func (w *Writer) Flush() {
	for shard, b := range w.buffer {
		if len(b) > 0 {
			w.set.addShard(shard, b)
			w.buffer[shard] = b[:0]
		}
	}
}

// AddBitmap adds every id of b.
func (s *Set) AddBitmap(b *Bitmap) {
	for i := range b.containers {
		c := &b.containers[i]
		shard := int(c.key) % shardCount
		s.shards[shard].Lock()
		s.chunks[c.key].addContainer(c)
		s.shards[shard].Unlock()
	}
}

func (c *setChunk) addContainer(from *container) {
	if from.kind == arrayKind && c.bits == nil && len(c.list)+from.card <= listMax {
		for i := 0; i+1 < len(from.data); i += 2 {
			c.list = append(c.list, binary.LittleEndian.Uint16(from.data[i:]))
		}
		return
	}
	c.widen()
	from.addTo(c.bits)
}

// Union adds every id of other.
func (s *Set) Union(other *Set) {
	for key := range other.chunks {
		c, o := &s.chunks[key], &other.chunks[key]
		switch {
		case o.bits == nil:
			for _, low := range o.list {
				c.add(low)
			}
		default:
			c.widen()
			o.addTo(c.bits)
		}
	}
}

// Intersect removes every id that is not in b.
func (s *Set) Intersect(b *Bitmap) {
	for key := range s.chunks {
		c := &s.chunks[key]
		from := b.container(uint16(key))
		if from == nil || c.empty() {
			*c = setChunk{}
			continue
		}
		var mine, theirs words
		c.addTo(&mine)
		from.addTo(&theirs)
		for i := range mine {
			mine[i] &= theirs[i]
		}
		c.set(&mine)
	}
}

// Subtract removes every id of b.
func (s *Set) Subtract(b *Bitmap) {
	for i := range b.containers {
		from := &b.containers[i]
		c := &s.chunks[from.key]
		if c.empty() {
			continue
		}
		var mine, theirs words
		c.addTo(&mine)
		from.addTo(&theirs)
		for i := range mine {
			mine[i] &^= theirs[i]
		}
		c.set(&mine)
	}
}

// Empty reports whether the set has no id.
func (s *Set) Empty() bool {
	for key := range s.chunks {
		if !s.chunks[key].empty() {
			return false
		}
	}
	return true
}

// Bitmap encodes the set: the smallest container for each chunk, so the same
// ids give the same bytes, however they came in. It works on all cores.
func (s *Set) Bitmap() *Bitmap {
	encoded := make([]container, maxContainers)
	inParallel(maxContainers, func(key int) {
		c := &s.chunks[key]
		switch {
		case c.bits != nil:
			encoded[key] = encodeChunk(uint16(key), c.bits)
		case len(c.list) > 0:
			var w words
			c.addTo(&w)
			encoded[key] = encodeChunk(uint16(key), &w)
		}
	})
	list := encoded[:0]
	for _, c := range encoded {
		if c.card > 0 {
			list = append(list, c)
		}
	}
	return assemble(list)
}

// inParallel calls do(0) … do(n-1) on all cores, in no order.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
