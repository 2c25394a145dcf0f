package bitmap

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
