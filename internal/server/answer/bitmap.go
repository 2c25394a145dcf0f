package answer

import (
	"encoding/base64"
	"encoding/binary"

	"capper/internal/capping"
)

// The portable roaring format, https://github.com/RoaringBitmap/RoaringFormatSpec.
const (
	cookiePlain   = 12346 // no container is a run container; their number follows
	cookieRuns    = 12347 // the number less 1 is in the upper half; flags of the run containers follow
	offsetsFrom   = 4     // with run containers, offsets are written from this many containers on
	arrayMax      = 4096  // ids of the largest array container
	bitmapPayload = 8192  // bytes of a bitmap container
)

// chunk is the users of one container: those with the same upper 16 bits.
type chunk struct {
	users []capping.UserID
	runs  int
}

func (c chunk) isRuns() bool  { return 2+4*c.runs < min(2*len(c.users), bitmapPayload) }
func (c chunk) isArray() bool { return len(c.users) <= arrayMax }

func (c chunk) size() int {
	switch {
	case c.isRuns():
		return 2 + 4*c.runs
	case c.isArray():
		return 2 * len(c.users)
	}
	return bitmapPayload
}

// appendBitmap appends the users, which must ascend, as a portable roaring
// bitmap with the smallest container for each chunk. It costs a few
// nanoseconds a user, as nothing is sorted, searched or built in between.
func appendBitmap(dst []byte, users []capping.UserID) []byte {
	chunks := chunksOf(users)
	dst = appendHeader(dst, chunks)
	for _, c := range chunks {
		switch {
		case c.isRuns():
			dst = c.appendRuns(dst)
		case c.isArray():
			for _, user := range c.users {
				dst = append(dst, byte(user), byte(user>>8))
			}
		default:
			dst = c.appendBits(dst)
		}
	}
	return dst
}

func chunksOf(users []capping.UserID) (chunks []chunk) {
	for len(users) > 0 {
		key, n, runs := users[0]>>16, 1, 1
		for ; n < len(users) && users[n]>>16 == key; n++ {
			if users[n] != users[n-1]+1 {
				runs++
			}
		}
		chunks = append(chunks, chunk{users[:n], runs})
		users = users[n:]
	}
	return chunks
}

func appendHeader(dst []byte, chunks []chunk) []byte {
	start, runs := len(dst), false
	for _, c := range chunks {
		runs = runs || c.isRuns()
	}
	if runs {
		dst = binary.LittleEndian.AppendUint32(dst, cookieRuns|uint32(len(chunks)-1)<<16)
		flags := len(dst)
		dst = append(dst, make([]byte, (len(chunks)+7)/8)...)
		for i, c := range chunks {
			if c.isRuns() {
				dst[flags+i/8] |= 1 << (i % 8)
			}
		}
	} else {
		dst = binary.LittleEndian.AppendUint32(dst, cookiePlain)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(chunks)))
	}
	for _, c := range chunks {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(c.users[0]>>16))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(c.users)-1))
	}
	if runs && len(chunks) < offsetsFrom {
		return dst
	}
	offset := len(dst) - start + 4*len(chunks)
	for _, c := range chunks {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(offset))
		offset += c.size()
	}
	return dst
}

func (c chunk) appendRuns(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(c.runs))
	for i := 0; i < len(c.users); {
		first := i
		for i++; i < len(c.users) && c.users[i] == c.users[i-1]+1; i++ {
		}
		dst = binary.LittleEndian.AppendUint16(dst, uint16(c.users[first]))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(i-first-1))
	}
	return dst
}

func (c chunk) appendBits(dst []byte) []byte {
	start := len(dst)
	var zeros [bitmapPayload]byte
	dst = append(dst, zeros[:]...)
	payload := dst[start:]
	for _, user := range c.users {
		payload[uint16(user)>>3] |= 1 << (user & 7)
	}
	return dst
}

// appendBase64Bitmap appends the users, which must ascend, as a JSON string.
// scratch is a buffer to use; it is returned for the next call.
func appendBase64Bitmap(dst, scratch []byte, users []capping.UserID) (extended, scratchOut []byte) {
	scratch = appendBitmap(scratch[:0], users)
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, scratch)
	return append(dst, '"'), scratch
}
