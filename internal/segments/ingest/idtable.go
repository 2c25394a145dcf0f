package ingest

import "math/bits"

// The function "hash" spreads ids evenly over all 64-bit numbers. The function "hash" combines both halves of a 128-bit
// product, like wyhash (https://github.com/wangyi-fudan/wyhash).
func hash[ID uint32 | uint64](id ID) uint64 {
	high, low := bits.Mul64(uint64(id)^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return high ^ low
}

func limitOf(level uint32) uint64 { return ^uint64(0) >> level }

// The function "pick" appends the ids whose hash is at most the limit for the given sample level to the slice "to".
func pick[ID uint32 | uint64](to, ids []ID, level uint32) []ID {
	limit := limitOf(level)
	for _, id := range ids {
		if hash(id) <= limit {
			to = append(to, id)
		}
	}
	return to
}

// An idTable is a set of user ids, stored as a hash table with open addressing. The zero idTable is an empty set.
type idTable[ID uint32 | uint64] struct {
	slots []ID // 0: empty; the length is a power of two, and at most half are used
	zero  bool // true if the set has the id 0
	count int
}

// minSlots is the number of hash table slots of an idTable with its first id.
const minSlots = 1 << 10

func (t *idTable[ID]) add(id ID, h uint64) {
	if id == 0 {
		if !t.zero {
			t.zero = true
			t.count++
		}
		return
	}
	if 2*t.count >= len(t.slots) {
		t.grow()
	}
	if t.put(id, h) {
		t.count++
	}
}

// The method "put" adds an id to the set, and reports whether the id is new. The argument "h" of the method "put" is
// the hash of the id.
func (t *idTable[ID]) put(id ID, h uint64) bool {
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask { // uses the lower bits, because the upper bits are similar within a sample
		switch t.slots[i] {
		case 0:
			t.slots[i] = id
			return true
		case id:
			return false
		}
	}
}

func (t *idTable[ID]) grow() {
	before := t.slots
	t.slots = make([]ID, max(2*len(before), minSlots))
	for _, id := range before {
		if id != 0 {
			t.put(id, hash(id))
		}
	}
}
