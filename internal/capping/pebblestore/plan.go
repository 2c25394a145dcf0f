package pebblestore

import (
	"math"
	"slices"

	"capper/internal/capping"
)

// A plan holds the users of a call, sorted by stripe (group of users with a common lock). Each element of the plan is a
// 64-bit number. The upper 32 bits of the element contain a whole dense id, or the upper half of an id image (64-bit
// number that stands for the id). The lower 32 bits of the element are the user's index in the call. One sort of
// integers works for dense ids and for id images.
type plan struct {
	users  []uint64
	images []capping.UserID       // the users of the call, in a store for images
	starts [stripeCount + 1]int32 // the users of stripe s are users[starts[s]:starts[s+1]]
}

const upperHalf = math.MaxUint32 << 32

// The method "arrange" fills the plan p for the given users. The argument r of the method "arrange" determines the
// stripe (group of users with a common lock) of each user.
func (p *plan) arrange(users []capping.UserID, r runs) {
	p.images = p.images[:0]
	if r.ofImages() {
		p.images = append(p.images, users...)
	}
	p.users = slices.Grow(p.users[:0], len(users))[:len(users)]
	clear(p.starts[:])
	for _, user := range users {
		p.starts[r.stripe(user)+1]++
	}
	for s := range stripeCount {
		p.starts[s+1] += p.starts[s]
	}
	next := p.starts
	for i, user := range users {
		s := r.stripe(user)
		upper := uint64(user) << 32
		if r.ofImages() {
			upper = uint64(user) & upperHalf
		}
		p.users[next[s]] = upper | uint64(i)
		next[s]++
	}
}

// The method "user" returns the user and the user's index in the call from an element of the plan.
func (p *plan) user(packed uint64) (user capping.UserID, index int) {
	index = int(uint32(packed))
	if len(p.images) > 0 {
		return p.images[index], index
	}
	return capping.UserID(packed >> 32), index
}

// A portion is a part of a plan: the users of the stripes (groups of users with a common lock) with an index from
// "first" to below "last".
type portion struct{ first, last int }

// portionUsers is the approximate number of users between two releases of the locks of a call. Because a large call
// releases its locks often, a call for one user does not wait long.
const portionUsers = 1024

// sortPortion sorts the users of one portion of a plan in the order of their database keys, and returns the sorted
// elements of the plan. Id images whose upper halves are equal may be in another order, which only makes reads slower.
// A call hardly ever has id images (64-bit numbers that stand for ids) with equal upper halves.
func (p *plan) sortPortion(part portion) []uint64 {
	users := p.users[p.starts[part.first]:p.starts[part.last]]
	slices.Sort(users)
	return users
}

// The method "portions" divides the plan into portions (parts with at least one user), and appends the portions to dst.
func (p *plan) portions(dst []portion) []portion {
	first := 0
	for s := range stripeCount {
		n := p.starts[s+1] - p.starts[first]
		if n == 0 {
			first = s + 1
			continue
		}
		if n >= portionUsers || s == stripeCount-1 {
			dst = append(dst, portion{first, s + 1})
			first = s + 1
		}
	}
	return dst
}
