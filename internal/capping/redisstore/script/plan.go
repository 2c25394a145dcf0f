package script

import (
	"cmp"
	"slices"
)

// Plan holds the users of a batch by partition, in ascending order within each partition. An item has the user id in
// its upper 32 bits and the index into the batch in its lower 32 bits.
type Plan struct {
	Items []uint64
	Parts []Part

	ends    []int // scratch, by partition
	scratch []uint64
}

// Part is the range of one partition's items, from Start up to but not including End.
type Part struct{ Partition, Start, End int }

// Item returns the item of the user at the index of the batch.
func Item(user uint32, index int) uint64 { return uint64(user)<<32 | uint64(uint32(index)) }

// UserOf returns the user id of the item.
func UserOf(item uint64) uint32 { return uint32(item >> 32) }

// indexOf returns the index of the item's user in the batch.
func indexOf(item uint64) int { return int(uint32(item)) }

// Arrange fills the plan with the users of a batch.
func (plan *Plan) Arrange(k Keyspace, users []uint32) {
	plan.Items = slices.Grow(plan.Items[:0], len(users))[:len(users)]
	plan.Parts = plan.Parts[:0]
	if len(users) < k.Partitions {
		plan.sort(k, users)
		return
	}
	plan.count(k, users)
}

// sort orders the users of a small batch by comparison.
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

// count orders the users of a large batch by a counting sort over partitions. Users that are not ascending are sorted
// by a radix sort first.
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

// radix returns the users' items in ascending order, in scratch memory. radix makes three passes of 11, 11 and 10 bits,
// from scratch to items and back.
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
