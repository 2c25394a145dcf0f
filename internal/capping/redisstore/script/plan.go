package script

import (
	"cmp"
	"slices"
)

// Plan is the users of a batch by partition and, within one, ascending: an
// item is the user id above the index into the batch.
type Plan struct {
	Items []uint64
	Parts []Part

	ends    []int // scratch: by partition
	scratch []uint64
}

// Part is the items of one partition, from Start to before End.
type Part struct{ Partition, Start, End int }

// Item is the user at the index of the batch.
func Item(user uint32, index int) uint64 { return uint64(user)<<32 | uint64(uint32(index)) }

// UserOf is the user of the item.
func UserOf(item uint64) uint32 { return uint32(item >> 32) }

// indexOf is where the item's user stands in the batch.
func indexOf(item uint64) int { return int(uint32(item)) }

// Arrange orders users.
func (plan *Plan) Arrange(k Keyspace, users []uint32) {
	plan.Items = slices.Grow(plan.Items[:0], len(users))[:len(users)]
	plan.Parts = plan.Parts[:0]
	if len(users) < k.Partitions {
		plan.sort(k, users)
		return
	}
	plan.count(k, users)
}

// sort orders few users by comparing them.
func (plan *Plan) sort(k Keyspace, users []uint32) {
	for i, user := range users {
		plan.Items[i] = Item(user, i)
	}
	slices.SortFunc(plan.Items, func(a, b uint64) int {
		if p, q := k.Partition(UserOf(a)), k.Partition(UserOf(b)); p != q {
			return cmp.Compare(p, q)
		}
		return cmp.Compare(a, b)
	})
	for i, item := range plan.Items {
		p, n := k.Partition(UserOf(item)), len(plan.Parts)
		if n > 0 && plan.Parts[n-1].Partition == p {
			plan.Parts[n-1].End++
			continue
		}
		plan.Parts = append(plan.Parts, Part{p, i, i + 1})
	}
}

// count orders many users by a counting sort over partitions, after a radix
// sort over ids when they were not ascending.
func (plan *Plan) count(k Keyspace, users []uint32) {
	plan.ends = slices.Grow(plan.ends[:0], k.Partitions)[:k.Partitions]
	clear(plan.ends)
	ascending, last := true, uint32(0)
	for _, user := range users {
		plan.ends[k.Partition(user)]++
		ascending = ascending && user >= last
		last = user
	}
	start := 0
	for p, n := range plan.ends {
		plan.ends[p] = start
		if n > 0 {
			plan.Parts = append(plan.Parts, Part{p, start, start + n})
		}
		start += n
	}
	if ascending {
		for i, user := range users {
			plan.place(k, Item(user, i))
		}
		return
	}
	for _, item := range plan.radix(users) {
		plan.place(k, item)
	}
}

func (plan *Plan) place(k Keyspace, item uint64) {
	p := k.Partition(UserOf(item))
	plan.Items[plan.ends[p]] = item
	plan.ends[p]++
}

const digitBits = 11

// radix is the items of the users in ascending order, in scratch memory: three
// passes of 11, 11 and 10 bits, from scratch over items and back.
func (plan *Plan) radix(users []uint32) []uint64 {
	plan.scratch = slices.Grow(plan.scratch[:0], len(users))[:len(users)]
	var places [3][1 << digitBits]uint32
	for i, user := range users {
		plan.scratch[i] = Item(user, i)
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
	from, to := plan.scratch, plan.Items
	for pass := range places {
		for _, item := range from {
			place := &places[pass][UserOf(item)>>(digitBits*pass)&(1<<digitBits-1)]
			to[*place] = item
			*place++
		}
		from, to = to, from
	}
	// After an odd number of passes the sorted items are in plan.Items.
	plan.Items, plan.scratch = plan.scratch, plan.Items
	return plan.scratch
}
