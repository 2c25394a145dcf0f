package bitmap

// Patch returns a copy of the bitmap b in which some blocks of 65,536 ids have new content. The argument keys of Patch
// has the upper 16 bits of the ids in the changed blocks, in ascending order. For each key, Patch calls the function
// fill with an empty Words, and fill adds the ids of the block. Patch copies all other blocks in their encoded form.
func Patch(b *Bitmap, keys []uint16, fill func(key uint16, w *Words)) *Bitmap {
	list := make([]container, 0, len(b.containers)+len(keys))
	rest := b.containers
	var w Words
	for _, key := range keys {
		for len(rest) > 0 && rest[0].key < key {
			list, rest = append(list, rest[0]), rest[1:]
		}
		if len(rest) > 0 && rest[0].key == key {
			rest = rest[1:]
		}
		w.Clear()
		fill(key, &w)
		if c := encodeContainer(key, &w.bits); c.card > 0 {
			list = append(list, c)
		}
	}
	return assemble(append(list, rest...))
}

// Put adds the id whose lower 16 bits are low to w if member is true, and removes the id otherwise.
func (w *Words) Put(low uint16, member bool) {
	bit := uint64(1) << (low & 63)
	if member {
		w.bits[low>>6] |= bit
	} else {
		w.bits[low>>6] &^= bit
	}
}
