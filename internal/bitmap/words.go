package bitmap

import (
	"math/bits"
)

// words is the ids of one container as a bitset.
type words [containerWords]uint64

func (w *words) count() int {
	n := 0
	for _, x := range w {
		n += bits.OnesCount64(x)
	}
	return n
}

// runs counts the runs: the bits that are set while the one below is not.
func (w *words) runs() int {
	n, carry := 0, uint64(0)
	for _, x := range w {
		n += bits.OnesCount64(x &^ (x<<1 | carry))
		carry = x >> 63
	}
	return n
}

// next is the first position from at whose bit, after flipping by flip, is
// set; containerIDs when there is none.
func (w *words) next(at int, flip uint64) int {
	if at >= containerIDs {
		return containerIDs
	}
	i := at >> 6
	x := (w[i] ^ flip) >> (at & 63) << (at & 63)
	for x == 0 {
		if i++; i == containerWords {
			return containerIDs
		}
		x = w[i] ^ flip
	}
	return i<<6 + bits.TrailingZeros64(x)
}

// addRange sets the bits start … end, both inclusive.
func (w *words) addRange(start, end int) {
	first, last := start>>6, end>>6
	head, tail := ^uint64(0)<<(start&63), ^uint64(0)>>(63-end&63)
	if first == last {
		w[first] |= head & tail
		return
	}
	w[first] |= head
	for i := first + 1; i < last; i++ {
		w[i] = ^uint64(0)
	}
	w[last] |= tail
}
