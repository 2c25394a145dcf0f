package bitmap

import (
	"math/bits"
)

// The type "words" contains the ids of one container (65,536 neighbouring numbers) as a bitset of 65,536 bits.
type words [containerWords]uint64

func (w *words) count() int {
	n := 0
	for _, x := range w {
		n += bits.OnesCount64(x)
	}
	return n
}

// The method "runs" counts the runs of consecutive ids in w. A run starts at each set bit whose lower neighbour is not
// set.
func (w *words) runs() int {
	n, carry := 0, uint64(0)
	for _, x := range w {
		n += bits.OnesCount64(x &^ (x<<1 | carry))
		carry = x >> 63
	}
	return n
}

// The method "next" computes the XOR of each word with the argument "flip", and returns the first position with a set
// bit, from the position "at" on. If no such bit is set, the method "next" returns containerIDs (65,536).
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

// addRange sets the bits from start to end, both included.
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

// BlockIDs is the number of ids in a block: all 32-bit ids with the same upper 16 bits.
const BlockIDs = containerIDs

// MaxBlocks is the number of blocks (65,536 neighbouring ids each) that contain all 32-bit ids.
const MaxBlocks = maxContainers

// The type Words contains ids of one block (65,536 neighbouring ids) as a bitset. With Words, a caller can compute with
// large sets one block after the other. The zero Words is empty.
type Words struct{ bits words }

// An Extent is one of Nothing, Some and Everything: a set has none, some or all of the ids of one block (65,536
// neighbouring ids). If the Extent is Nothing or Everything, callers need not look at the single ids of the block.
type Extent uint8

// Nothing, Some and Everything mean that a set has none, some or all ids of a block (65,536 neighbouring ids).
const (
	Nothing Extent = iota
	Some
	Everything
)

// extentOf returns the Extent (Nothing, Some or Everything) of a set with n ids of a block.
func extentOf(n int) Extent {
	switch n {
	case 0:
		return Nothing
	case containerIDs:
		return Everything
	default:
		return Some
	}
}

// The method Fill adds every id of the block to w.
func (w *Words) Fill() { w.bits.addRange(0, containerIDs-1) }

// Clear removes every id from w.
func (w *Words) Clear() { clear(w.bits[:]) }

// The method Extent reports whether w contains none, some or all of the 65,536 ids of a block.
func (w *Words) Extent() Extent { return extentOf(w.bits.count()) }

// Count returns the number of ids in w.
func (w *Words) Count() int { return w.bits.count() }

// The method And removes the ids that are not in v from w. If w is empty afterwards, the method And returns Nothing,
// and otherwise Some.
func (w *Words) And(v *Words) Extent {
	var any uint64
	for i, x := range v.bits {
		x &= w.bits[i]
		w.bits[i] = x
		any |= x
	}
	return someOf(any)
}

// The method Without removes the ids that are in v from w. If w is empty afterwards, the method Without returns
// Nothing, and otherwise Some.
func (w *Words) Without(v *Words) Extent {
	var any uint64
	for i, x := range v.bits {
		x = w.bits[i] &^ x
		w.bits[i] = x
		any |= x
	}
	return someOf(any)
}

// Invert sets w to the ids of the block that are not in v. The caller must ensure that v has at least one id of the
// block, but not all ids.
func (w *Words) Invert(v *Words) Extent {
	for i, x := range v.bits {
		w.bits[i] = ^x
	}
	return Some
}

// The method Or adds the ids of v to w. The caller must ensure that w is not empty.
func (w *Words) Or(v *Words) Extent {
	all := ^uint64(0)
	for i, x := range v.bits {
		x |= w.bits[i]
		w.bits[i] = x
		all &= x
	}
	if all == ^uint64(0) {
		return Everything
	}
	return Some
}

func someOf(any uint64) Extent {
	if any == 0 {
		return Nothing
	}
	return Some
}

// The method Keep removes the ids below the argument "first" and the ids above the argument "last" from w. Each of the
// two arguments is the lower 16 bits of an id, because all ids of a block have the same upper bits.
func (w *Words) Keep(first, last uint16) {
	var kept words
	kept.addRange(int(first), int(last))
	for i := range w.bits {
		w.bits[i] &= kept[i]
	}
}

// SetMarked sets w to the ids in the slice "ids" whose mark is 1. The mark of ids[i] is marks[i]. Every mark must be 0
// or 1. All ids must belong to one block.
func (w *Words) SetMarked(ids []uint32, marks []uint8) {
	w.Clear()
	for i, id := range ids {
		w.bits[uint16(id)>>6] |= uint64(marks[i]&1) << (id & 63)
	}
}

// Rank returns the lower 16 bits of the id at the position n in w; the lowest id has the position 0. The caller must
// ensure that w has more than n ids.
func (w *Words) Rank(n int) uint16 {
	for i, x := range w.bits {
		ids := bits.OnesCount64(x)
		if n >= ids {
			n -= ids
			continue
		}
		for ; n > 0; n-- {
			x &= x - 1
		}
		return uint16(i<<6 + bits.TrailingZeros64(x))
	}
	return containerIDs - 1
}

// AppendIDs appends the lowest ids of the set w, at most "limit" ids, in ascending order to the slice "ids". The
// argument "key" is the upper 16 bits of the ids in w.
func (w *Words) AppendIDs(ids []uint32, key, limit int) []uint32 {
	base := uint32(key) << 16
	for i, x := range w.bits {
		for ; x != 0; x &= x - 1 {
			if limit == 0 {
				return ids
			}
			limit--
			ids = append(ids, base|uint32(i<<6+bits.TrailingZeros64(x)))
		}
	}
	return ids
}
