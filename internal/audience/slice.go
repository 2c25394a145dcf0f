package audience

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"capper/internal/bitmap"
	"capper/internal/share"
)

// MaxParts is the maximum number of parts of an audience.
const MaxParts = 10_000

// Query selects some users of an audience: a sample, a part, or the users after a cursor. The zero Query selects all
// users.
type Query struct {
	Sample *share.Share // only users in this sample; nil: all users
	Part   Part
	Cursor *Cursor // only users after this cursor; nil: from the first user
}

// Part identifies one of several equally large parts of an audience. The zero Part is the whole audience.
type Part struct {
	Of    int // number of parts, 1 to MaxParts
	Index int // index of this part, from 0
}

// Check returns an error if the number of parts or the index of the part is not valid.
func (p Part) Check() error {
	switch {
	case p == Part{}:
		return nil
	case p.Of < 1 || p.Of > MaxParts:
		return fmt.Errorf("of: the number of parts must be from 1 to %d, got %d", MaxParts, p.Of)
	case p.Index < 0 || p.Index >= p.Of:
		return fmt.Errorf("index: the index of a part must be from 0 to %d, got %d", p.Of-1, p.Index)
	}
	return nil
}

// The method "next" returns the part of the audience with the next index, or nil after the last part.
func (p Part) next() *Part {
	if p.Index+1 >= p.Of {
		return nil
	}
	return &Part{Of: p.Of, Index: p.Index + 1}
}

// A slice represents the users of an audience who are in the query's sample, and whose numbers are between the fields
// "first" and "last". If ids are dense (32-bit numbers), the number of a user is the user's id.
type slice struct {
	first, last uint32
	empty       bool
	sample      *share.Share
}

// The method "blocks" returns the range of blocks (of 65,536 numbers) of the slice: the first block's key, and the key
// after the last block.
func (s *slice) blocks(a *Audience) (from, to int) {
	if s.empty {
		return 0, 0
	}
	return int(s.first >> 16), min(a.blocks, int(s.last>>16)+1)
}

// The method "slice" returns the users of the audience whom a query selects, as a slice of the audience.
func (a *Audience) slice(ctx context.Context, q *Query) (*slice, error) {
	s := &slice{last: math.MaxUint32, sample: q.Sample}
	if err := q.Part.Check(); err != nil {
		return nil, fmt.Errorf("part.%w", err)
	}
	if q.Part.Of > 1 {
		if err := a.part(ctx, q.Part, s); err != nil {
			return nil, err
		}
	}
	if q.Cursor == nil {
		return s, nil
	}
	if q.Cursor.Generation != a.Generation() || q.Cursor.query != a.queryHash(q) {
		return nil, ErrOtherQuery
	}
	s.empty = s.empty || q.Cursor.after >= s.last
	s.first = max(s.first, q.Cursor.after+1)
	return s, nil
}

// The method "part" reduces a slice to the users in the given part of the audience. The package comment in doc.go
// defines the parts of an audience.
func (a *Audience) part(ctx context.Context, p Part, s *slice) error {
	counts, err := a.inBlocks(ctx)
	if err != nil {
		return err
	}
	users := sum(counts)
	from := users * uint64(p.Index) / uint64(p.Of)
	to := users * uint64(p.Index+1) / uint64(p.Of)
	if from == to {
		s.empty = true
		return nil
	}
	s.first, s.last = a.rank(counts, from), a.rank(counts, to-1)
	return nil
}

func sum(counts []uint32) (total uint64) {
	for _, n := range counts {
		total += uint64(n)
	}
	return total
}

// The method "rank" returns the n-th lowest number (counted from 0) of a user in the audience. The audience must have
// more than n users.
func (a *Audience) rank(counts []uint32, n uint64) uint32 {
	key := 0
	for ; n >= uint64(counts[key]); key++ {
		n -= uint64(counts[key])
	}
	d := a.engine.workshop.take(a.plan)
	defer a.engine.workshop.giveBack(d)
	if a.plan.eval(key, d.words) == bitmap.Everything {
		d.words[0].Fill()
	}
	return uint32(key)<<16 | uint32(d.words[0].Rank(int(n)))
}

// The method "narrow" removes all users who are not in the slice from the first buffer of the desk (the buffers of one
// goroutine).
func (s *slice) narrow(key int, a *Audience, d *desk, extent bitmap.Extent) {
	w := &d.words[0]
	if extent == bitmap.Everything {
		w.Fill()
	}
	first, last := uint16(0), uint16(math.MaxUint16)
	if key == int(s.first>>16) {
		first = uint16(s.first)
	}
	if key == int(s.last>>16) {
		last = uint16(s.last)
	}
	if first > 0 || last < math.MaxUint16 {
		w.Keep(first, last)
	}
	if s.sample != nil {
		d.keep(key, a.snapshot, s.sample)
	}
}

// Count returns the number of users that a query selects.
func (a *Audience) Count(ctx context.Context, q Query) (uint64, error) {
	if q == (Query{}) {
		counts, err := a.inBlocks(ctx)
		return sum(counts), err
	}
	var users atomic.Uint64
	err := a.eachOf(ctx, &q, func(_ int, w *bitmap.Words) { users.Add(uint64(w.Count())) })
	return users.Load(), err
}

// eachOf calls the function "use" for each block (65,536 neighbouring numbers), with the users of the block that the
// query selects. The calls of "use" run on all CPU cores at the same time, and in any order.
func (a *Audience) eachOf(ctx context.Context, q *Query, use func(key int, w *bitmap.Words)) error {
	s, err := a.slice(ctx, q)
	if err != nil {
		return err
	}
	from, to := s.blocks(a)
	return a.each(ctx, from, to, func(key int, d *desk, extent bitmap.Extent) {
		s.narrow(key, a, d, extent)
		use(key, &d.words[0])
	})
}

// Bitmap returns all users that a query selects.
func (a *Audience) Bitmap(ctx context.Context, q Query) (*bitmap.Bitmap, error) {
	blocks := make([]bitmap.Encoded, a.blocks)
	if err := a.eachOf(ctx, &q, func(key int, w *bitmap.Words) { blocks[key] = w.Encode(key) }); err != nil {
		return nil, err
	}
	return bitmap.Join(blocks), nil
}

// The type Page holds users of an audience in ascending order of their numbers. The caller owns the slice Users.
type Page struct {
	Users []uint32
	Next  *Cursor // position of the next page; nil: this page is the last
	// NextPart is the next part of the audience. Only the last page of a part has a NextPart. On the last part of the
	// audience, NextPart is nil.
	NextPart *Part
}

// TooManyError reports that an audience query selects more users than one API call may return.
type TooManyError struct{ Most int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the audience has more users than one call may have, which is %d: request a page or a part",
		e.Most)
}

// Users returns all users that a query selects. If the query selects more users than the argument "most", Users
// returns a *TooManyError.
func (a *Audience) Users(ctx context.Context, q Query, most int) (*Page, error) {
	p, err := a.Page(ctx, q, most)
	if err == nil && p.Next != nil {
		return nil, &TooManyError{Most: most}
	}
	return p, err
}

// Page returns the first n users that a query selects. If the query selects fewer than n users, Page returns all of
// them. The number n must be above 0.
func (a *Audience) Page(ctx context.Context, q Query, n int) (*Page, error) {
	s, err := a.slice(ctx, &q)
	if err != nil {
		return nil, err
	}
	n = min(n, math.MaxUint32+1)         // the number of 32-bit ids
	users, err := a.collect(ctx, s, n+1) // one extra user shows whether another page follows
	if err != nil {
		return nil, err
	}
	p := &Page{Users: users}
	if len(users) > n {
		p.Users = users[:n]
		p.Next = &Cursor{Generation: a.Generation(), after: users[n-1], query: a.queryHash(&q)}
	} else {
		p.NextPart = q.Part.next()
	}
	return p, nil
}

// The method "collect" returns the first n users of a slice of the audience.
func (a *Audience) collect(ctx context.Context, s *slice, n int) ([]uint32, error) {
	d := a.engine.workshop.take(a.plan)
	defer a.engine.workshop.giveBack(d)
	users := []uint32{}
	from, to := s.blocks(a)
	for key := from; key < to && len(users) < n; key++ {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		extent := a.plan.eval(key, d.words)
		if extent == bitmap.Nothing {
			continue
		}
		s.narrow(key, a, d, extent)
		users = d.words[0].AppendIDs(users, key, n-len(users))
	}
	return users, nil
}
