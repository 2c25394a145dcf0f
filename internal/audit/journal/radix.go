package journal

import "slices"

// The function ascending reports whether the user ids are in strictly ascending order.
func ascending[ID ~uint32 | ~uint64](ids []ID) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			return false
		}
	}
	return true
}

// For at most fewIDs ids, a comparison sort is faster than the radix sort.
const fewIDs = 200

// sortIDs sorts user ids with a radix sort, by digits of 11 bits. The function sortIDs takes a few nanoseconds for each
// id: a tenth of the time of a comparison sort. The function sortIDs uses the argument "spare" as scratch memory. The
// caller should pass the returned memory as "spare" to the next call of sortIDs.
func sortIDs[ID ~uint32 | ~uint64](ids, spare []ID) []ID {
	if len(ids) <= fewIDs {
		slices.Sort(ids)
		return spare
	}
	spare = slices.Grow(spare[:0], len(ids))[:len(ids)]
	from, to := ids, spare
	for shift := 0; ^ID(0)>>shift > 0; shift += 11 {
		var starts [1 << 11]uint32
		for _, id := range from {
			starts[id>>shift&(1<<11-1)]++
		}
		sum := uint32(0)
		for i, n := range starts {
			starts[i] = sum
			sum += n
		}
		for _, id := range from {
			digit := id >> shift & (1<<11 - 1)
			to[starts[digit]] = id
			starts[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &ids[0] { // true after the three passes over 32 bits
		copy(ids, from)
	}
	return spare
}
