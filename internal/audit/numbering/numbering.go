// Package numbering assigns small numbers to the users of audit records, so that bitmaps can hold users with other ids
// than 32-bit numbers.
package numbering

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// The type Numbers assigns the numbers 0, 1, 2 and so on to the users of an audit, in the order of first occurrence.
// Callers index data about users by these small numbers, because id images (64-bit hashes) are too sparse for an index.
// A nil *Numbers means that user ids are dense (32-bit numbers), and that each id is the user's number. A Numbers is
// not safe for concurrent use.
type Numbers struct {
	images []capping.UserID // by number
	slots  []uint32         // a hash table of 1 + number, with a power of 2 as its length; 0 is free
	shift  int              // 64 less the binary logarithm of the number of slots
	seed   uint64
	found  []uint32 // of the group that is being numbered
}

// New returns a Numbers for id images (64-bit hashes of ids), without users yet.
func New() *Numbers {
	const bits = 10
	return &Numbers{slots: make([]uint32, 1<<bits), shift: 64 - bits, seed: rand.Uint64()}
}

// The method slot returns the hash table slot with the number of an id image (64-bit hash), or the free slot for a new
// number.
func (n *Numbers) slot(image capping.UserID) *uint32 {
	at := (uint64(image) ^ n.seed) * 0x9e3779b97f4a7c15 >> n.shift
	for n.slots[at] != 0 && n.images[n.slots[at]-1] != image {
		at = (at + 1) & uint64(len(n.slots)-1)
	}
	return &n.slots[at]
}

// The method add returns the number of the user with the id image (64-bit hash). If the user has no number yet, the
// method assigns a number.
func (n *Numbers) add(image capping.UserID) (uint32, error) {
	slot := n.slot(image)
	if *slot == 0 {
		if len(n.images) == math.MaxUint32 {
			return 0, fmt.Errorf("the audit has too many users: the maximum is %d",
				uint32(math.MaxUint32))
		}
		if n.images = append(n.images, image); 2*len(n.images) > len(n.slots) {
			n.grow()
			slot = n.slot(image)
		}
		*slot = uint32(len(n.images))
	}
	return *slot - 1, nil
}

// The method grow doubles the size of the hash table from id images (64-bit hashes) to small numbers.
func (n *Numbers) grow() {
	n.slots, n.shift = make([]uint32, 2*len(n.slots)), n.shift-1
	for i, image := range n.images[:len(n.images)-1] {
		*n.slot(image) = uint32(i + 1)
	}
}

// Len returns the number of users to whom the Numbers has assigned a number.
func (n *Numbers) Len() int { return len(n.images) }

// Bytes returns the size of the Numbers in memory, in bytes.
func (n *Numbers) Bytes() int64 {
	if n == nil {
		return 0
	}
	return int64(8*cap(n.images) + 4*len(n.slots) + 4*cap(n.found))
}

// Record returns a copy of the audit record in which the numbers of the users replace their id images (64-bit hashes).
func (n *Numbers) Record(r *audit.Record) (*audit.Record, error) {
	with := *r
	with.Groups = slices.Clone(r.Groups)
	for i := range with.Groups {
		g := &with.Groups[i]
		n.found = n.found[:0]
		for _, image := range g.Images {
			number, err := n.add(image)
			if err != nil {
				return nil, err
			}
			n.found = append(n.found, number)
		}
		slices.Sort(n.found)
		g.Users, g.Images = bitmap.OfSorted(n.found), nil
	}
	return &with, nil
}

// The method Of returns the small numbers of the given users. Each user must have occurred in an earlier record. The
// method Of stores the numbers in the buffer. If ids are dense, the number of a user is the id.
func (n *Numbers) Of(buffer *[]capping.UserID, users []capping.UserID) []capping.UserID {
	if n == nil {
		return users
	}
	list := (*buffer)[:0]
	for _, image := range users {
		list = append(list, capping.UserID(*n.slot(image)-1))
	}
	*buffer = list
	return list
}

// Users returns the users with the given numbers. Users stores the users in the buffer.
func (n *Numbers) Users(buffer *[]capping.UserID, numbers []capping.UserID) []capping.UserID {
	if n == nil {
		return numbers
	}
	list := (*buffer)[:0]
	for _, number := range numbers {
		list = append(list, n.images[number])
	}
	*buffer = list
	return list
}
