package bitmap

// The function Patch returns a copy of the bitmap b in which the blocks (65,536 neighbouring ids) with the given keys
// have new content. A key is the upper 16 bits of all ids in a block. The keys must be in ascending order. For each
// key, the function Patch calls the function "fill" with an empty Words. The function "fill" adds the new ids of the
// block to this Words. The function Patch copies unchanged blocks in their encoded form.
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

// The method Put adds an id to the set w if the argument "member" is true. Otherwise, Put removes the id. The argument
// "low" is the lower 16 bits of the id.
func (w *Words) Put(low uint16, member bool) {
	bit := uint64(1) << (low & 63)
	if member {
		w.bits[low>>6] |= bit
	} else {
		w.bits[low>>6] &^= bit
	}
}
