package segments

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Set collects user ids. The zero value is an empty set. It holds a bitset of
// 8 KiB per chunk of 65,536 ids that has any id, at most 512 MiB for ids over
// the whole space: memory is bounded by the id space, not by the input.
//
// Writers and AddBitmap may be used by several goroutines at once; everything
// else needs exclusive use.
type Set struct {
	chunks [maxContainers]*words
	// Chunk k is guarded by shards[k % shardCount]: writers that sort their ids
	// into shards first touch little memory at a time and rarely wait.
	shards [shardCount]sync.Mutex
}

const shardCount = 64

// shardOf names the shard of an id.
func shardOf(id uint32) int { return int(id >> 16 % shardCount) }

// Add puts one id into the set.
func (s *Set) Add(id uint32) { s.add(id) }

func (s *Set) add(id uint32) {
	w := s.chunks[id>>16]
	if w == nil {
		w = new(words)
		s.chunks[id>>16] = w
	}
	w[id>>6&(chunkWords-1)] |= 1 << (id & 63)
}

// addShard adds ids that all belong to one shard.
func (s *Set) addShard(shard int, ids []uint32) {
	s.shards[shard].Lock()
	defer s.shards[shard].Unlock()
	for _, id := range ids {
		s.add(id)
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
		c.addTo(s.chunk(c.key))
		s.shards[shard].Unlock()
	}
}

func (s *Set) chunk(key uint16) *words {
	if s.chunks[key] == nil {
		s.chunks[key] = new(words)
	}
	return s.chunks[key]
}

// Union adds every id of other.
func (s *Set) Union(other *Set) {
	for key, o := range other.chunks {
		if o == nil {
			continue
		}
		w := s.chunk(uint16(key))
		for i := range w {
			w[i] |= o[i]
		}
	}
}

// Intersect removes every id that is not in other.
func (s *Set) Intersect(other *Set) {
	for key, w := range s.chunks {
		o := other.chunks[key]
		if w == nil || o == nil {
			s.chunks[key] = nil
			continue
		}
		for i := range w {
			w[i] &= o[i]
		}
	}
}

// Empty reports whether the set has no id.
func (s *Set) Empty() bool {
	for _, w := range s.chunks {
		if w != nil && w.count() > 0 {
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
		if w := s.chunks[key]; w != nil {
			encoded[key] = encodeChunk(uint16(key), w)
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
