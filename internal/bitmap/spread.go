package bitmap

import "sort"

// The method Spread increases ids of the bitmap b to make space for other ids between them, and returns the result. For
// each entry e of the slice "before", Spread adds 1 to every id that is e or higher. The entries must be in ascending
// order, and may repeat. No id in the result may exceed 2^32-1.
func (b *Bitmap) Spread(before []uint32) *Bitmap {
	var list []container
	var ids, part []uint32
	inserted := 0
	for i := range b.containers {
		ids = b.containers[i].appendTo(ids[:0])
		for rest := ids; len(rest) > 0; {
			inserted = after(before, inserted, rest[0])
			key := (uint64(rest[0]) + uint64(inserted)) >> 16
			last := (key+1)<<16 - 1 - uint64(inserted) // last id of b for this container of the result
			if inserted < len(before) {
				last = min(last, uint64(before[inserted])-1)
			}
			n := after(rest, 0, uint32(min(last, 1<<32-1)))
			if len(part) > 0 && uint64(part[0]>>16) != key {
				list, part = append(list, containerOf(part)), part[:0]
			}
			for _, id := range rest[:n] {
				part = append(part, id+uint32(inserted))
			}
			rest = rest[n:]
		}
	}
	if len(part) > 0 {
		list = append(list, containerOf(part))
	}
	return assemble(list)
}

// The function "after" returns the index of the first entry of an ascending list that is above a value. The search
// begins at the index "from", and doubles its step each time. Such a search is fast, because the wanted entry is
// usually near the index "from".
func after(list []uint32, from int, value uint32) int {
	if n := len(list); n == from || list[n-1] <= value {
		return n
	}
	step := 1
	for from+step < len(list) && list[from+step-1] <= value {
		from += step
		step *= 2
	}
	rest := list[from:min(from+step, len(list))]
	return from + sort.Search(len(rest), func(i int) bool { return rest[i] > value })
}

// containerOf encodes ascending ids with equal upper 16 bits as a container.
func containerOf(ids []uint32) container {
	c := container{form: smallest(uint16(ids[0]>>16), len(ids), runsOf(ids))}
	c.data = appendForm(make([]byte, 0, c.size()), ids, &c.form)
	return c
}
