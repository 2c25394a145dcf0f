package gate

import "sync"

// The sizes of pooled buffers: each four times the one before, so that what a
// call holds is at most four times what it has received, or 4 KiB. Larger ones
// double and are not kept.
const (
	// smallestBuffer is the least that a call holds.
	smallestBuffer = 4 << 10
	largestPooled  = smallestBuffer << (2 * (bufferSizes - 1))
	bufferSizes    = 6
)

// buffers are the bodies and answers of calls, by size.
var buffers [bufferSizes]sync.Pool

// NewBuffer is an empty buffer with room for n bytes; PutBuffer puts it back.
func NewBuffer(n int64) []byte {
	size := int64(smallestBuffer)
	for i := range buffers {
		if n <= size {
			if b, ok := buffers[i].Get().(*[]byte); ok {
				return *b
			}
			return make([]byte, 0, size)
		}
		size *= 4
	}
	return make([]byte, 0, n)
}

// PutBuffer takes a buffer of any capacity back, which is not used any more.
func PutBuffer(b []byte) {
	for i, size := 0, smallestBuffer; i < bufferSizes; i, size = i+1, size*4 {
		if cap(b) == size {
			b = b[:0]
			buffers[i].Put(&b)
			return
		}
	}
}

// NextSize is the capacity of the buffer that follows one of the capacity, for
// at most limit bytes.
func NextSize(capacity int, limit int64) int64 {
	if capacity < largestPooled {
		return max(int64(capacity)*4, smallestBuffer)
	}
	return max(min(int64(capacity)*2, limit), int64(capacity)+smallestBuffer)
}
