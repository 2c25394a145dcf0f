package script

import (
	"cmp"
	"slices"

	"capper/internal/capping"
)

// A Plan holds the users of a batch, sorted by partition and, within each partition, by bucket. A Plan has one item for
// each user of the batch; the item is a 64-bit number. The upper 32 bits of the item are the user's place (see
// Keyspace.place), and the lower 32 bits the index of the user in the batch. If the ids are dense, the place of a user
// is the id, so the items of each partition are in ascending order.
type Plan struct {
	Items []uint64
	Parts []Part

	ends    []int // scratch memory, by partition
	scratch []uint64
}

// A Part is the range of a Plan's items that belong to one partition: from Start up to, but not including, End.
type Part struct{ Partition, Start, End int }

// Item returns the item of a Plan that stands for the user at the given index of the batch.
func (k Keyspace) Item(user capping.UserID, index int) uint64 {
	return itemAt(k.place(user), index)
}

func itemAt(place uint32, index int) uint64 { return uint64(place)<<32 | uint64(uint32(index)) }

func placeOf(item uint64) uint32 { return uint32(item >> 32) }

// indexOf returns the user of an item, as an index in the batch.
func indexOf(item uint64) int { return int(uint32(item)) }

// The method Arrange fills the Plan with the items of the batch's users, in the order of partitions and buckets.
func (plan *Plan) Arrange(k Keyspace, users []capping.UserID) {
	plan.Items = slices.Grow(plan.Items[:0], len(users))[:len(users)]
	plan.Parts = plan.Parts[:0]
	if len(users) < k.Partitions {
		plan.sort(k, users)
		return
	}
	plan.count(k, users)
}

// The method "sort" puts the users of a small batch in the order of the Plan, by comparing the users with each other.
func (plan *Plan) sort(k Keyspace, users []capping.UserID) {
	for i, user := range users {
		plan.Items[i] = k.Item(user, i)
	}
	slices.SortFunc(plan.Items, func(a, b uint64) int {
		if p, q := k.partitionAt(placeOf(a)), k.partitionAt(placeOf(b)); p != q {
			return cmp.Compare(p, q)
		}
		return cmp.Compare(a, b)
	})
	for i, item := range plan.Items {
		p, n := k.partitionAt(placeOf(item)), len(plan.Parts)
		if n > 0 && plan.Parts[n-1].Partition == p {
			plan.Parts[n-1].End++
			continue
		}
		plan.Parts = append(plan.Parts, Part{p, i, i + 1})
	}
}

// The method "count" puts the users of a large batch in the order of the Plan, with a counting sort by partition. If
// the users are not in ascending order, "count" first sorts them with a radix sort.
func (plan *Plan) count(k Keyspace, users []capping.UserID) {
	plan.ends = slices.Grow(plan.ends[:0], k.Partitions)[:k.Partitions]
	clear(plan.ends)
	ascending, last, shift := true, uint32(0), k.orderShift()
	for _, user := range users {
		place := k.place(user)
		plan.ends[k.partitionAt(place)]++
		ascending = ascending && place>>shift >= last
		last = place >> shift
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
			plan.place(k, k.Item(user, i))
		}
		return
	}
	for _, item := range plan.radix(k, users) {
		plan.place(k, item)
	}
}

func (plan *Plan) place(k Keyspace, item uint64) {
	p := k.partitionAt(placeOf(item))
	plan.Items[plan.ends[p]] = item
	plan.ends[p]++
}

const digitBits = 11

// The method "radix" sorts the items of the users by place (the bits that determine partition and bucket), and returns
// them in scratch memory. Three passes over 11, 11 and 10 bits of the place copy the items between two slices.
func (plan *Plan) radix(k Keyspace, users []capping.UserID) []uint64 {
	plan.scratch = slices.Grow(plan.scratch[:0], len(users))[:len(users)]
	var places [3][1 << digitBits]uint32
	for i, user := range users {
		place := k.place(user)
		plan.scratch[i] = itemAt(place, i)
		for pass := range places {
			places[pass][place>>(digitBits*pass)&(1<<digitBits-1)]++
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
			place := &places[pass][placeOf(item)>>(digitBits*pass)&(1<<digitBits-1)]
			to[*place] = item
			*place++
		}
		from, to = to, from
	}
	// After an odd number of passes, the sorted items are in plan.Items.
	plan.Items, plan.scratch = plan.scratch, plan.Items
	return plan.scratch
}
