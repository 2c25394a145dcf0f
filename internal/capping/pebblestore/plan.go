package pebblestore

import (
	"slices"

	"capper/internal/capping"
)

// plan is the users of a call arranged by stripe, each as user<<32 | its index in
// the call.
type plan struct {
	users  []uint64
	starts [stripeCount + 1]int32 // users of stripe s are users[starts[s]:starts[s+1]]
}

// arrange makes the plan that of these users.
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

// chunk is the users of the stripes from first up to but not including last.
type chunk struct{ first, last int }

// chunkUsers is how many users are decided before the locks are given back,
// about. It bounds how long a call for one user waits for a large one.
const chunkUsers = 1024

// sortChunk sorts and returns the users of a chunk, by id, which is the order of
// the database.
func (p *plan) sortChunk(k chunk) []uint64 {
	users := p.users[p.starts[k.first]:p.starts[k.last]]
	slices.Sort(users)
	return users
}

// chunks appends to dst the chunks of the plan, each of at least one user.
func (p *plan) chunks(dst []chunk) []chunk {
	first := 0
	for s := range stripeCount {
		n := p.starts[s+1] - p.starts[first]
		if n == 0 {
			first = s + 1
			continue
		}
		if n >= chunkUsers || s == stripeCount-1 {
			dst = append(dst, chunk{first, s + 1})
			first = s + 1
		}
	}
	return dst
}
