package audience

import (
	"sync"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/share"
)

// A plan is an audience expression whose names refer to segments and sets of a certain generation, ready for
// evaluation.
type plan struct {
	operator    byte // the operator of the node
	left, right *plan
	load        func(key int, w *bitmap.Words) bitmap.Extent // loads the users of one block that the name selects
	words       int                                          // number of buffers of one block that the evaluation needs
}

// The method "eval" finds the users of one block (65,536 neighbouring numbers) that the expression selects. If the
// expression selects some users of the block but not all, the result is Some, and the first buffer of the argument w
// holds the selected users. If the expression selects none or all users of the block, the content of the first buffer
// is undefined. The argument w must have the number of buffers in the field "words" of the plan.
func (p *plan) eval(key int, w []bitmap.Words) bitmap.Extent {
	if p.operator == 0 {
		return p.load(key, &w[0])
	}
	left := p.left.eval(key, w)
	switch p.operator {
	case '&':
		return p.and(left, key, w)
	case '|':
		return p.or(left, key, w)
	default:
		return p.without(left, key, w)
	}
}

func (p *plan) and(left bitmap.Extent, key int, w []bitmap.Words) bitmap.Extent {
	switch left {
	case bitmap.Nothing:
		return bitmap.Nothing
	case bitmap.Everything:
		return p.right.eval(key, w)
	}
	switch p.right.eval(key, w[1:]) {
	case bitmap.Nothing:
		return bitmap.Nothing
	case bitmap.Everything:
		return bitmap.Some
	default:
		return w[0].And(&w[1])
	}
}

func (p *plan) or(left bitmap.Extent, key int, w []bitmap.Words) bitmap.Extent {
	switch left {
	case bitmap.Nothing:
		return p.right.eval(key, w)
	case bitmap.Everything:
		return bitmap.Everything
	}
	switch p.right.eval(key, w[1:]) {
	case bitmap.Nothing:
		return bitmap.Some
	case bitmap.Everything:
		return bitmap.Everything
	default:
		return w[0].Or(&w[1])
	}
}

func (p *plan) without(left bitmap.Extent, key int, w []bitmap.Words) bitmap.Extent {
	if left == bitmap.Nothing {
		return bitmap.Nothing
	}
	switch p.right.eval(key, w[1:]) {
	case bitmap.Nothing:
		return left
	case bitmap.Everything:
		return bitmap.Nothing
	}
	if left == bitmap.Everything {
		return w[0].Invert(&w[1])
	}
	return w[0].Without(&w[1])
}

// A desk holds the buffers with which one goroutine evaluates an audience expression.
type desk struct {
	words []bitmap.Words // one block per buffer; the first buffer holds the result
	ids   []uint32       // the numbers of the block's users, if keep checks users one by one
	users []capping.UserID
	marks []uint8
}

// The method "keep" removes all users who are not in the sample from the first buffer of the desk (the buffers of one
// goroutine). A sample selects users by their ids, and therefore selects the same users in every generation (published
// version). If ids are not dense, the method "keep" first converts the numbers of users to ids.
func (d *desk) keep(key int, of *segments.Snapshot, sample *share.Share) {
	d.ids = d.words[0].AppendIDs(d.ids[:0], key, bitmap.BlockIDs)
	d.marks = append(d.marks[:0], make([]uint8, len(d.ids))...)
	if of.KnownIDs() == 0 { // dense ids: the numbers equal the ids
		share.Mark(sample, d.ids, d.marks, 1)
	} else {
		d.users = of.AppendUsers(d.users[:0], d.ids)
		share.Mark(sample, d.users, d.marks, 1)
	}
	d.words[0].SetMarked(d.ids, d.marks)
}

// A workshop is a pool of unused desks (buffers with which one goroutine evaluates an audience).
type workshop struct{ desks sync.Pool }

// The method "take" returns a desk (the buffers of one goroutine) with enough buffers for the given plan.
func (s *workshop) take(p *plan) *desk {
	d, _ := s.desks.Get().(*desk)
	if d == nil {
		d = &desk{}
	}
	if len(d.words) < p.words {
		d.words = make([]bitmap.Words, p.words)
	}
	return d
}

func (s *workshop) giveBack(d *desk) { s.desks.Put(d) }
