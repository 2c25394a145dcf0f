package bitmap

import (
	"encoding/binary"
	"slices"
	"sync"

	"capper/internal/parallel"
)

// A Set collects user ids in any order. The zero Set is empty. A Set takes 2 MiB of memory, plus memory for each
// container (65,536 neighbouring ids). A container starts as a list of 2 bytes per id and becomes a bitset of 8 KiB
// after 2,048 entries. A Set takes at most 514 MiB of memory, because all 32-bit ids fit into 65,536 containers.
//
// Several goroutines may use Writers and AddBitmap at the same time. Every other method of a Set needs exclusive use.
type Set struct {
	containers [maxContainers]setContainer
	// The lock shards[k % shardCount] guards container k. Writers first sort their ids by shard (containers with the
	// same lock). Writers therefore access little memory at a time, and rarely wait for a lock.
	shards [shardCount]sync.Mutex
}

// A setContainer contains the ids of a Set that have equal upper 16 bits: first as a list, and with many ids as a
// bitset. The list is unordered and may repeat ids.
type setContainer struct {
	bits *words
	list []uint16
}

// listMax is the maximum number of ids in the list of a setContainer. A setContainer with more than listMax ids becomes
// a bitset.
const listMax = 2048

func (c *setContainer) add(low uint16) {
	if c.bits == nil {
		if len(c.list) < listMax {
			c.list = append(c.list, low)
			return
		}
		c.widen()
	}
	c.bits[low>>6] |= 1 << (low & 63)
}

// The method "widen" converts the list to a bitset.
func (c *setContainer) widen() {
	if c.bits == nil {
		c.bits = new(words)
		c.addTo(c.bits)
		c.list = nil
	}
}

// addTo sets the bits of the container's ids in w.
func (c *setContainer) addTo(w *words) {
	for _, low := range c.list {
		w[low>>6] |= 1 << (low & 63)
	}
	if c.bits != nil && c.bits != w {
		for i, x := range c.bits {
			w[i] |= x
		}
	}
}

// The method "set" replaces the ids of the container by a copy of the ids in w.
func (c *setContainer) set(w *words) {
	*c = setContainer{}
	if n := w.count(); n > listMax/2 {
		c.bits = new(words)
		*c.bits = *w
	} else if n > 0 {
		for at := w.next(0, 0); at < containerIDs; at = w.next(at+1, 0) {
			c.list = append(c.list, uint16(at))
		}
	}
}

func (c *setContainer) empty() bool {
	return len(c.list) == 0 && (c.bits == nil || *c.bits == words{})
}

// SetOf returns a set of the given ids. The ids may be in any order and may repeat.
func SetOf(ids ...uint32) *Set {
	s := new(Set)
	for _, id := range ids {
		s.Add(id)
	}
	return s
}

// The function Of returns a bitmap of the given ids. The ids may be in any order and may repeat. The function Of uses
// no Set, because sorting a few ids is faster than allocating a Set.
func Of(ids ...uint32) *Bitmap {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return OfSorted(slices.Compact(sorted))
}

// OfSorted returns the bitmap of strictly ascending ids, without building a Set. OfSorted panics if the ids do not
// ascend strictly.
func OfSorted(ids []uint32) *Bitmap {
	b, err := Read(AppendSorted(nil, ids))
	if err != nil {
		panic("bitmap: ids that do not ascend: " + err.Error())
	}
	return b
}

// Range returns the bitmap of all ids from the argument "from" to the argument "to" minus 1.
func Range(from, to uint32) *Bitmap {
	var ids []uint32
	for id := from; id < to; id++ {
		ids = append(ids, id)
	}
	return OfSorted(ids)
}

const shardCount = 64

// shardOf returns the index of an id's shard (containers with the same lock).
func shardOf(id uint32) int { return int(id >> 16 % shardCount) }

// Add adds one id to the set.
func (s *Set) Add(id uint32) { s.containers[id>>16].add(uint16(id)) }

// addShard adds ids of one shard (containers with the same lock) to the set, and holds the lock of the shard meanwhile.
// All the ids must belong to this shard.
func (s *Set) addShard(shard int, ids []uint32) {
	s.shards[shard].Lock()
	defer s.shards[shard].Unlock()
	for _, id := range ids {
		s.Add(id)
	}
}

// AddBitmap adds every id of b to the set.
func (s *Set) AddBitmap(b *Bitmap) {
	for i := range b.containers {
		c := &b.containers[i]
		shard := int(c.key) % shardCount
		s.shards[shard].Lock()
		s.containers[c.key].addContainer(c)
		s.shards[shard].Unlock()
	}
}

func (c *setContainer) addContainer(from *container) {
	if from.kind == arrayKind && c.bits == nil && len(c.list)+from.card <= listMax {
		for i := 0; i+1 < len(from.data); i += 2 {
			c.list = append(c.list, binary.LittleEndian.Uint16(from.data[i:]))
		}
		return
	}
	c.widen()
	from.addTo(c.bits)
}

// The method Union adds every id of the set "other" to the set s.
func (s *Set) Union(other *Set) {
	for key := range other.containers {
		c, o := &s.containers[key], &other.containers[key]
		switch {
		case o.bits == nil:
			for _, low := range o.list {
				c.add(low)
			}
		default:
			c.widen()
			o.addTo(c.bits)
		}
	}
}

// Intersect removes every id that is not in the bitmap b from the Set.
func (s *Set) Intersect(b *Bitmap) {
	for key := range s.containers {
		c := &s.containers[key]
		from := b.container(uint16(key))
		if from == nil || c.empty() {
			*c = setContainer{}
			continue
		}
		var mine, theirs words
		c.addTo(&mine)
		from.addTo(&theirs)
		for i := range mine {
			mine[i] &= theirs[i]
		}
		c.set(&mine)
	}
}

// Subtract removes every id of the bitmap b from the Set.
func (s *Set) Subtract(b *Bitmap) {
	for i := range b.containers {
		from := &b.containers[i]
		c := &s.containers[from.key]
		if c.empty() {
			continue
		}
		var mine, theirs words
		c.addTo(&mine)
		from.addTo(&theirs)
		for i := range mine {
			mine[i] &^= theirs[i]
		}
		c.set(&mine)
	}
}

// Empty reports whether the set holds no id.
func (s *Set) Empty() bool {
	for key := range s.containers {
		if !s.containers[key].empty() {
			return false
		}
	}
	return true
}

// The method Bitmap encodes the Set as a Bitmap, on all CPU cores. The method Bitmap stores each container in its
// smallest form, so equal sets always have equal encoded bytes.
func (s *Set) Bitmap() *Bitmap {
	var keys []uint16
	for key := range s.containers {
		if c := &s.containers[key]; c.bits != nil || len(c.list) > 0 {
			keys = append(keys, uint16(key))
		}
	}
	encoded := make([]container, len(keys))
	parallel.OnAllCores(len(keys), func(i int) {
		c := &s.containers[keys[i]]
		if c.bits != nil {
			encoded[i] = encodeContainer(keys[i], c.bits)
			return
		}
		var w words
		c.addTo(&w)
		encoded[i] = encodeContainer(keys[i], &w)
	})
	list := encoded[:0]
	for _, c := range encoded {
		if c.card > 0 {
			list = append(list, c)
		}
	}
	return assemble(list)
}
