package ingest

import "math/bits"

// hash spreads ids over 64 bits, whatever their pattern: both halves of a product of
// 128 bits, as in wyhash (https://github.com/wangyi-fudan/wyhash).
func hash(id uint32) uint64 {
	high, low := bits.Mul64(uint64(id)^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return high ^ low
}

func limitOf(level uint32) uint64 { return ^uint64(0) >> level }

// pick appends the ids that are in a sample of this level.
func pick(to, ids []uint32, level uint32) []uint32 {
	limit := limitOf(level)
	for _, id := range ids {
		if hash(id) <= limit {
			to = append(to, id)
		}
	}
	return to
}

// table is a set of ids with open addressing. The zero table is empty.
type idTable struct {
	slots []uint32 // 0: empty; a power of two of them, at most half of them used
	zero  bool     // the id 0 is in the set
	count int
}

// minSlots is how many slots the first id makes.
const minSlots = 1 << 10

func (t *idTable) add(id uint32, h uint64) {
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

// put reports whether the id was not there.
func (t *idTable) put(id uint32, h uint64) bool {
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask { // the lower bits: those above are alike in a sample
		switch t.slots[i] {
		case 0:
			t.slots[i] = id
			return true
		case id:
			return false
		}
	}
}

func (t *idTable) grow() {
	before := t.slots
	t.slots = make([]uint32, max(2*len(before), minSlots))
	for _, id := range before {
		if id != 0 {
			t.put(id, hash(id))
		}
	}
}
