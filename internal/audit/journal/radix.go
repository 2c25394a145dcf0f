package journal

import "slices"

// ascending reports whether each id is above the one before.
func ascending(ids []uint32) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			return false
		}
	}
	return true
}

// fewIDs is up to how many a comparing sort is the faster one.
const fewIDs = 200

// sortIDs sorts ids, digit by digit of 11 bits: some nanoseconds an id, where comparing
// takes ten times as long. spare is memory; it is returned for the next time.
func sortIDs(ids, spare []uint32) []uint32 {
	if len(ids) <= fewIDs {
		slices.Sort(ids)
		return spare
	}
	spare = slices.Grow(spare[:0], len(ids))[:len(ids)]
	from, to := ids, spare
	for shift := 0; shift < 32; shift += 11 {
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
	copy(ids, from) // after three passes they are in the spare memory
	return spare
}
