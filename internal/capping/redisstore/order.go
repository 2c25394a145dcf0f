package redisstore

import (
	"cmp"
	"slices"
)

// order is the users of a batch by partition and, within one, ascending: an
// item is the user id above the index into the batch.
type order struct {
	items []uint64
	parts []part

	ends    []int // scratch: by partition
	scratch []uint64
}

// part is the items of one partition that are in no call yet.
type part struct{ partition, start, end int }

func item(user uint32, index int) uint64 { return uint64(user)<<32 | uint64(uint32(index)) }

func userOf(item uint64) uint32 { return uint32(item >> 32) }

func indexOf(item uint64) int { return int(uint32(item)) }

// arrange orders users.
func (o *order) arrange(l layout, users []uint32) {
	o.items = slices.Grow(o.items[:0], len(users))[:len(users)]
	o.parts = o.parts[:0]
	if len(users) < l.partitions {
		o.sort(l, users)
		return
	}
	o.count(l, users)
}

// sort orders few users by comparing them.
func (o *order) sort(l layout, users []uint32) {
	for i, user := range users {
		o.items[i] = item(user, i)
	}
	slices.SortFunc(o.items, func(a, b uint64) int {
		if p, q := l.partition(userOf(a)), l.partition(userOf(b)); p != q {
			return cmp.Compare(p, q)
		}
		return cmp.Compare(a, b)
	})
	for i, item := range o.items {
		p, n := l.partition(userOf(item)), len(o.parts)
		if n > 0 && o.parts[n-1].partition == p {
			o.parts[n-1].end++
			continue
		}
		o.parts = append(o.parts, part{p, i, i + 1})
	}
}

// count orders many users by a counting sort over partitions, after a radix
// sort over ids when they were not ascending.
func (o *order) count(l layout, users []uint32) {
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
		if n > 0 {
			o.parts = append(o.parts, part{p, start, start + n})
		}
		start += n
	}
	if ascending {
		for i, user := range users {
			o.place(l, item(user, i))
		}
		return
	}
	for _, item := range o.radix(users) {
		o.place(l, item)
	}
}

func (o *order) place(l layout, item uint64) {
	p := l.partition(userOf(item))
	o.items[o.ends[p]] = item
	o.ends[p]++
}

const digitBits = 11

// radix is the items of the users in ascending order, in scratch memory: three
// passes of 11, 11 and 10 bits, from scratch over items and back.
func (o *order) radix(users []uint32) []uint64 {
	o.scratch = slices.Grow(o.scratch[:0], len(users))[:len(users)]
	var places [3][1 << digitBits]uint32
	for i, user := range users {
		o.scratch[i] = item(user, i)
		for pass := range places {
			places[pass][user>>(digitBits*pass)&(1<<digitBits-1)]++
		}
	}
	for pass := range places {
		start := uint32(0)
		for digit, n := range places[pass] {
			places[pass][digit] = start
			start += n
		}
	}
	from, to := o.scratch, o.items
	for pass := range places {
		for _, item := range from {
			place := &places[pass][userOf(item)>>(digitBits*pass)&(1<<digitBits-1)]
			to[*place] = item
			*place++
		}
		from, to = to, from
	}
	// After an odd number of passes the sorted items are in o.items.
	o.items, o.scratch = o.scratch, o.items
	return o.scratch
}
