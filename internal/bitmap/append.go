package bitmap

import (
	"encoding/binary"
	"slices"
	"sort"
)

// AppendSorted appends the encoded bitmap of the ids to dst. The ids must ascend strictly. A Set with the same ids has
// equal encoded bytes. AppendSorted takes a few nanoseconds per id, because it builds no intermediate Set. AppendSorted
// ignores the upper 32 bits of an id.
func AppendSorted[ID ~uint32 | ~uint64](dst []byte, ids []ID) []byte {
	forms := formsOf(ids)
	dst = appendHeader(slices.Grow(dst, sizeOf(forms)), forms)
	for i := range forms {
		dst = appendForm(dst, ids[:forms[i].card], &forms[i])
		ids = ids[forms[i].card:]
	}
	return dst
}

// appendForm appends one encoded container (65,536 possible ids) to dst, in the form f. The argument "ids" contains the
// ids of the container.
func appendForm[ID ~uint32 | ~uint64](dst []byte, ids []ID, f *form) []byte {
	switch f.kind {
	case runKind:
		return appendRunsOf(dst, ids, f.runs)
	case arrayKind:
		return appendArrayOf(dst, ids)
	default:
		return appendBitsOf(dst, ids)
	}
}

// formsOf divides the ids into containers by their upper 16 bits, and returns the form in which each container takes
// the fewest bytes.
func formsOf[ID ~uint32 | ~uint64](ids []ID) (forms []form) {
	if n := len(ids); n > 0 { // allocate the maximum number of forms at once
		forms = make([]form, 0, min(n, int(ids[n-1]>>16-ids[0]>>16)+1))
	}
	for len(ids) > 0 {
		key := ids[0] >> 16
		most := min(len(ids), containerIDs)
		card := sort.Search(most, func(i int) bool { return ids[i]>>16 != key })
		forms = append(forms, smallest(uint16(key), card, runsOf(ids[:card])))
		ids = ids[card:]
	}
	return forms
}

// sizeOf returns an upper limit for the size of an encoded bitmap whose containers have the given forms, in bytes.
func sizeOf(forms []form) int {
	size := 8 + len(forms)*(1+4+offsetBytes) // includes run flags and offsets even if appendHeader omits them
	for i := range forms {
		size += forms[i].size()
	}
	return size
}

// runsOf counts the runs of consecutive ids in one container. The loop of runsOf has no branch that depends on an id,
// because the processor would often mispredict such a branch.
func runsOf[ID ~uint32 | ~uint64](ids []ID) int {
	runs := 1
	for i := 1; i < len(ids); i++ {
		first := 0
		if ids[i] != ids[i-1]+1 {
			first = 1
		}
		runs += first
	}
	return runs
}

func appendRunsOf[ID ~uint32 | ~uint64](dst []byte, ids []ID, runs int) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(runs))
	for i := 0; i < len(ids); {
		first := i
		for i++; i < len(ids) && ids[i] == ids[i-1]+1; i++ {
		}
		dst = binary.LittleEndian.AppendUint16(dst, uint16(ids[first]))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(i-first-1))
	}
	return dst
}

func appendArrayOf[ID ~uint32 | ~uint64](dst []byte, ids []ID) []byte {
	start := len(dst)
	dst = slices.Grow(dst, 2*len(ids))[:start+2*len(ids)]
	data := dst[start:]
	for i, id := range ids {
		binary.LittleEndian.PutUint16(data[2*i:], uint16(id))
	}
	return dst
}

func appendBitsOf[ID ~uint32 | ~uint64](dst []byte, ids []ID) []byte {
	start := len(dst)
	var zeros [bitmapBytes]byte
	dst = append(dst, zeros[:]...)
	data := dst[start:]
	for _, id := range ids {
		data[uint16(id)>>3] |= 1 << (id & 7)
	}
	return dst
}
