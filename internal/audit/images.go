package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"capper/internal/capping"
)

// An audit file stores a set of id images (64-bit hashes of ids) as the gaps between neighbouring images, in Rice
// coding. Rice coding stores the low bits of a gap unchanged. A number of zeros, followed by a 1, encodes the high
// bits. The number of zeros is the value of the high bits. The number of low bits follows from the number of images
// alone. The high bits have small values, because hashes are spread evenly: a million images take 46 bits each. The
// values of the high bits of any n images add up to at most 2n.

// For a set of n id images (64-bit hashes), lowBits returns how many low bits of each gap an audit file stores
// unchanged.
func lowBits(n int) uint { return uint(64 - bits.Len64(uint64(n))) }

// imagesBound returns the maximum number of bytes that n id images (64-bit hashes) take in an audit file.
func imagesBound(n int) int { return binary.MaxVarintLen64 + 8 + (n*int(lowBits(n)+3)+7)/8 }

// appendImages appends a set of id images (64-bit hashes), which must be in strictly ascending order. The function
// appendImages writes first the number of id images, and then the gaps between the images as bits. The first bit is the
// lowest bit of the first byte. A gap is the number of values between an id image and the next lower id image in the
// set.
func appendImages(p []byte, images []capping.UserID) []byte {
	p = appendUvarint(p, uint64(len(images)))
	low := lowBits(len(images))
	w := bitWriter{out: p}
	next := uint64(0)
	for _, image := range images {
		gap := uint64(image) - next
		w.put(gap&(1<<low-1), low)
		rest := gap >> low
		for ; rest >= 32; rest -= 32 {
			w.put(0, 32)
		}
		w.put(1<<rest, uint(rest)+1)
		next = uint64(image) + 1
	}
	return w.end()
}

// bitWriter appends bits to a byte slice, beginning with the lowest bit of each byte.
type bitWriter struct {
	out  []byte
	last uint64 // bits that are not in out
	n    uint   // number of these bits, below 64
}

// The method put appends the lowest n bits of the argument v, with n at most 64. In the argument v, all other bits must
// be 0.
func (w *bitWriter) put(v uint64, n uint) {
	w.last |= v << w.n
	if w.n += n; w.n >= 64 {
		w.out = binary.LittleEndian.AppendUint64(w.out, w.last)
		w.n -= 64
		w.last = v >> (n - w.n)
	}
}

// The method end appends the remaining bits, filled up with zeros to a whole byte, and returns all bytes.
func (w *bitWriter) end() []byte {
	for n := uint(0); n < w.n; n += 8 {
		w.out = append(w.out, byte(w.last>>n))
	}
	return w.out
}

// errImages reports that a stored gap leads to an id image (64-bit hash) of more than 64 bits.
var errImages = errors.New("images exceed 64 bits")

// The method "images" reads a set of id images (64-bit hashes) that appendImages wrote.
func (c *cursor) images() []capping.UserID {
	// Each id image takes more than one bit. The cursor therefore rejects a number of images that is too large for the
	// payload, before memory is allocated.
	n := c.below(8 * uint64(len(c.rest)))
	if c.err != nil {
		return nil
	}
	if n == 0 {
		c.fail(errors.New("a group of users in an audit record must not be empty"))
		return nil
	}
	low := lowBits(int(n))
	if need := n * uint64(low+1); need > 8*uint64(len(c.rest)) {
		c.fail(errTruncated)
		return nil
	}
	images := make([]capping.UserID, n)
	r := bitReader{in: c.rest}
	next, over := uint64(0), false
	for i := range images {
		gap := r.bits(low)
		rest := r.zeros()
		if over || rest > 1<<(64-low)-1 {
			c.fail(errImages)
			return nil
		}
		image, carry := bits.Add64(next, gap|rest<<low, 0)
		if carry != 0 {
			c.fail(errImages)
			return nil
		}
		images[i] = capping.UserID(image)
		next, over = image+1, image == 1<<64-1
	}
	used, err := r.end()
	if err != nil {
		c.fail(err)
		return nil
	}
	c.rest = c.rest[used:]
	return images
}

// bitReader reads the bits that a bitWriter wrote. After the end of the input, bitReader returns bits with the value 1,
// so that every sequence of zeros ends. If the input was too short, the method end returns an error.
type bitReader struct {
	in []byte
	at int // position in bits
}

// The method window returns at least 56 bits of the input, beginning at the current position.
func (r *bitReader) window() uint64 {
	at := r.at >> 3
	if at+8 <= len(r.in) {
		return binary.LittleEndian.Uint64(r.in[at:]) >> (r.at & 7)
	}
	window := ^uint64(0)
	for i := len(r.in) - 1; i >= at; i-- {
		window = window<<8 | uint64(r.in[i])
	}
	return window >> (r.at & 7)
}

// The method "bits" reads n bits. The argument n of the method "bits" is at most 64.
func (r *bitReader) bits(n uint) (v uint64) {
	if n > 32 {
		v = r.window() & (1<<32 - 1)
		r.at += 32
		v |= (r.window() & (1<<(n-32) - 1)) << 32
		r.at += int(n - 32)
		return v
	}
	v = r.window() & (1<<n - 1)
	r.at += int(n)
	return v
}

// The method "zeros" reads consecutive bits with the value 0, and the following bit with the value 1. The result of the
// method "zeros" is the number of bits with the value 0.
func (r *bitReader) zeros() (n uint64) {
	for {
		run := min(bits.TrailingZeros64(r.window()), 48)
		n += uint64(run)
		if run < 48 {
			r.at += run + 1
			return n
		}
		r.at += run
	}
}

// The method end returns the number of bytes that the bitReader has read. The error says that the input was too short,
// or that unused bits of the last byte are not 0.
func (r *bitReader) end() (used int, err error) {
	used = (r.at + 7) / 8
	if used > len(r.in) {
		return 0, errTruncated
	}
	if spare := r.at & 7; spare > 0 && r.in[used-1]>>spare != 0 {
		return 0, fmt.Errorf("decode id images (64-bit hashes of ids): the bits after the last image must be 0")
	}
	return used, nil
}
