package ops

import "slices"

// The type "distinct" counts distinct users by their id images (64-bit hashes of ids). Each id image takes 8 to 24
// bytes of memory. The zero value of distinct has counted no users.
type distinct struct {
	sorted []uint64 // distinct images
	recent []uint64
}

// leastRecent is the minimum number of recently added id images (64-bit hashes) at which the method "add" calls settle.
const leastRecent = 1 << 20

func (d *distinct) add(image uint64) {
	if d.recent = append(d.recent, image); len(d.recent) >= max(leastRecent, len(d.sorted)) {
		d.settle()
	}
}

// The method "count" returns the number of distinct id images (64-bit hashes), which is the number of users.
func (d *distinct) count() uint64 {
	d.settle()
	return uint64(len(d.sorted))
}

// The method "settle" sorts the recently added id images (64-bit hashes), and merges them into the sorted images.
func (d *distinct) settle() {
	slices.Sort(d.recent)
	fresh := slices.Compact(d.recent)
	if len(d.sorted) == 0 {
		d.sorted, d.recent = slices.Clone(fresh), d.recent[:0]
		return
	}
	old := d.sorted
	d.sorted = make([]uint64, 0, len(old)+len(fresh))
	for len(old) > 0 && len(fresh) > 0 {
		switch next := min(old[0], fresh[0]); {
		case old[0] == fresh[0]:
			d.sorted = append(d.sorted, next)
			old, fresh = old[1:], fresh[1:]
		case next == old[0]:
			d.sorted, old = append(d.sorted, next), old[1:]
		default:
			d.sorted, fresh = append(d.sorted, next), fresh[1:]
		}
	}
	d.sorted, d.recent = append(append(d.sorted, old...), fresh...), d.recent[:0]
}
