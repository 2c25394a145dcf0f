package redisstore

import "slices"

// order is the users of a batch by partition and, within one, ascending: an
// item is the user id above the index into the batch.
type order struct {
	items []uint64
	ends  []int // by partition: the end of its part of items
}

func item(user uint32, index int) uint64 { return uint64(user)<<32 | uint64(uint32(index)) }

func userOf(item uint64) uint32 { return uint32(item >> 32) }

func indexOf(item uint64) int { return int(uint32(item)) }

// arrange orders users by a counting sort; only parts of batches that were not
// ascending are sorted again.
func (o *order) arrange(l layout, users []uint32) {
	o.items = slices.Grow(o.items[:0], len(users))[:len(users)]
	o.ends = slices.Grow(o.ends[:0], l.partitions)[:l.partitions]
	clear(o.ends)
	ascending, last := true, uint32(0)
	for _, user := range users {
		o.ends[l.partition(user)]++
		ascending = ascending && user >= last
		last = user
	}
	start := 0
	for p, n := range o.ends {
		o.ends[p] = start
		start += n
	}
	for i, user := range users {
		p := l.partition(user)
		o.items[o.ends[p]] = item(user, i)
		o.ends[p]++
	}
	if !ascending {
		for p := range o.ends {
			slices.Sort(o.part(p))
		}
	}
}

// part is the items of one partition.
func (o *order) part(p int) []uint64 {
	start := 0
	if p > 0 {
		start = o.ends[p-1]
	}
	return o.items[start:o.ends[p]]
}
