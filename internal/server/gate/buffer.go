package gate

import "sync"

// These constants define the fixed sizes of pooled buffers. Each fixed size is four times the previous size. The buffer
// of a call is therefore at most four times as large as the received bytes, or 4 KiB. If a buffer is larger than
// largestPooled, its size doubles when it grows, and the server does not pool it.
const (
	// smallestBuffer is the size in bytes of the smallest buffer.
	smallestBuffer = 4 << 10
	largestPooled  = smallestBuffer << (2 * (bufferSizes - 1))
	bufferSizes    = 6
)

// The variable "buffers" holds a pool of buffers for request and response bodies, for each size.
var buffers [bufferSizes]sync.Pool

// NewBuffer returns an empty buffer with a capacity of at least n bytes. When the buffer is no longer needed,
// PutBuffer puts it back into its pool.
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

// PutBuffer puts a buffer back into the pool for buffers of the same capacity. If the capacity is not one of the
// pooled sizes, PutBuffer discards the buffer. After a call of PutBuffer, the caller must not use the buffer any
// more.
func PutBuffer(b []byte) {
	for i, size := 0, smallestBuffer; i < bufferSizes; i, size = i+1, size*4 {
		if cap(b) == size {
			b = b[:0]
			buffers[i].Put(&b)
			return
		}
	}
}

// NextSize returns the next buffer size above the given capacity, for a body of at most "limit" bytes.
func NextSize(capacity int, limit int64) int64 {
	if capacity < largestPooled {
		return max(int64(capacity)*4, smallestBuffer)
	}
	return max(min(int64(capacity)*2, limit), int64(capacity)+smallestBuffer)
}
