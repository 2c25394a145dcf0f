package bitmap

// Patch returns a copy of the bitmap b in which the blocks (of 65,536 ids) with the given keys have new content. The
// argument "keys" of Patch lists the blocks to change in ascending order. Each key is the upper 16 bits that all ids of
// a block share. Patch calls the function in the argument "fill" once for each key, and passes an empty Words to the
// function. This function adds the ids that the block shall have. Patch copies unchanged blocks in their
// encoded form.
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

// Put adds an id to the set w if member is true, and removes the id otherwise. The argument "low" of Put is the lower
// 16 bits of the id.
func (w *Words) Put(low uint16, member bool) {
	bit := uint64(1) << (low & 63)
	if member {
		w.bits[low>>6] |= bit
	} else {
		w.bits[low>>6] &^= bit
	}
}
