package audience

import (
	"sync"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/share"
)

// plan is an audience expression whose names refer to segments and sets of a certain generation, ready for
// evaluation.
type plan struct {
	operator    byte // the operator of the node
	left, right *plan
	load        func(key int, w *bitmap.Words) bitmap.Extent // loads the users of one block whom the name selects
	words       int                                          // number of buffers of one block that the evaluation needs
}

// eval computes which users of one block (65,536 neighbouring numbers) the expression selects, and stores them in the
// first buffer of the argument w. The first buffer holds the result of eval() only if eval() returns Some; otherwise
// the expression selects none or all users of the block. The argument w must have as many buffers as the field "words"
// of the plan says.
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

// desk holds the buffers that one goroutine uses to evaluate an audience expression.
type desk struct {
	words []bitmap.Words // one block per buffer; the first buffer holds the result
	ids   []uint32       // the numbers of the block's users, if keep checks users one by one
	users []capping.UserID
	marks []uint8
}

// keep removes all users who are not in the sample from the first buffer of the desk (the buffers of one goroutine).
// If ids are not dense, keep first converts the numbers of users to user ids, because a sample selects users by their
// ids. Because a sample goes by ids, it selects the same users in every generation.
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

// workshop is a pool of unused desks; a desk is the buffers that one goroutine needs to evaluate an audience.
type workshop struct{ desks sync.Pool }

// take returns a desk (the buffers of one goroutine) that is large enough to evaluate the given plan.
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
