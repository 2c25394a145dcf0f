package pebblestore

import (
	"slices"

	"capper/internal/capping"
)

// plan holds the users of a call sorted by stripe. Each element is user<<32 | the user's index in the call.
type plan struct {
	users  []uint64
	starts [stripeCount + 1]int32 // the users of stripe s are users[starts[s]:starts[s+1]]
}

// arrange makes p the plan of the given users.
func (p *plan) arrange(users []capping.UserID) {
	p.users = slices.Grow(p.users[:0], len(users))[:len(users)]
	clear(p.starts[:])
	for _, user := range users {
		p.starts[stripeOf(user)+1]++
	}
	for s := range stripeCount {
		p.starts[s+1] += p.starts[s]
	}
	next := p.starts
	for i, user := range users {
		s := stripeOf(user)
		p.users[next[s]] = uint64(user)<<32 | uint64(i)
		next[s]++
	}
}

// portion is the users of the stripes from first up to, but not including, last.
type portion struct{ first, last int }

// portionUsers is the approximate number of users that are decided under one hold of the locks. The number
// bounds how long a call for one user waits for a large call.
const portionUsers = 1024

// sortPortion sorts the users of a portion by id and returns them. The database has the same order.
func (p *plan) sortPortion(part portion) []uint64 {
	users := p.users[p.starts[part.first]:p.starts[part.last]]
	slices.Sort(users)
	return users
}

// portions appends to dst the portions of the plan, each with at least one user.
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
