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

// BlockIDs is how many neighbouring ids one block holds: those with the same upper half.
const BlockIDs = containerIDs

// MaxBlocks is how many blocks there are.
const MaxBlocks = maxContainers

// Words is the ids of one block as a bitset, for set arithmetic block by block. The
// zero value is empty.
type Words struct{ bits words }

// Extent says how much of a block a set holds. What loads Words leaves them as they
// were where the answer is Nothing or Everything, which saves the work for most blocks.
type Extent uint8

// The extents.
const (
	Nothing Extent = iota
	Some
	Everything
)

// extentOf is the extent of a set of n ids of a block.
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

// Fill puts every id in.
func (w *Words) Fill() { w.bits.addRange(0, containerIDs-1) }

// Clear takes every id out.
func (w *Words) Clear() { clear(w.bits[:]) }

// Extent is how much of the block it is; of Everything, the words have every id.
func (w *Words) Extent() Extent { return extentOf(w.bits.count()) }

// Count is the number of ids.
func (w *Words) Count() int { return w.bits.count() }

// And keeps the ids that are also in v.
func (w *Words) And(v *Words) Extent {
	var any uint64
	for i, x := range v.bits {
		x &= w.bits[i]
		w.bits[i] = x
		any |= x
	}
	return someOf(any)
}

// Without takes the ids of v out.
func (w *Words) Without(v *Words) Extent {
	var any uint64
	for i, x := range v.bits {
		x = w.bits[i] &^ x
		w.bits[i] = x
		any |= x
	}
	return someOf(any)
}

// Invert makes w the ids that are not in v, of which there are some.
func (w *Words) Invert(v *Words) Extent {
	for i, x := range v.bits {
		w.bits[i] = ^x
	}
	return Some
}

// Or puts the ids of v in. w was not empty before.
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

// Keep takes out what is below first and above last, both of the block.
func (w *Words) Keep(first, last uint16) {
	var kept words
	kept.addRange(int(first), int(last))
	for i := range w.bits {
		w.bits[i] &= kept[i]
	}
}

// SetMarked makes w those of the ids, all of its block, whose mark is 1, and not 0.
func (w *Words) SetMarked(ids []uint32, marks []uint8) {
	w.Clear()
	for i, id := range ids {
		w.bits[uint16(id)>>6] |= uint64(marks[i]&1) << (id & 63)
	}
}

// Rank is the id of the block, from 0, that has n lower ids; there are more than n.
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

// AppendIDs appends the ids of the block of a key, ascending, up to limit of them.
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
