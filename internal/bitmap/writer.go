package bitmap

// A Writer adds ids to a Set through a buffer. Several Writers may fill one Set at the same time, but each Writer is
// for one goroutine. The caller must call Flush after the last Add.
type Writer struct {
	set    *Set
	buffer [shardCount][]uint32
}

// writerBuffer is the number of ids that a Writer buffers per shard (containers with the same lock) before it takes the
// shard's lock. A buffer takes 4 KiB per shard, so that all buffers of one Writer fit in the L2 cache.
const writerBuffer = 1024

// NewWriter returns a Writer that adds ids to the set.
func (s *Set) NewWriter() *Writer { return &Writer{set: s} }

// Add adds ids to the set. The ids may stay in the buffer until Flush.
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

// Flush adds all buffered ids to the set.
func (w *Writer) Flush() {
	for shard, b := range w.buffer {
		if len(b) > 0 {
			w.set.addShard(shard, b)
			w.buffer[shard] = b[:0]
		}
	}
}
