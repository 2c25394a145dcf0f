package audience

import (
	"sync"

	"capper/internal/bitmap"
)

// plan is an expression whose names have been found in a generation.
type plan struct {
	operator    byte // as of node
	left, right *plan
	load        func(key int, w *bitmap.Words) bitmap.Extent // of a name
	words       int                                          // blocks of words that working it out takes
}

// eval works out the block of a key into the first of the words, of which there are
// enough; only where the answer is Some they are written.
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

// workshop keeps the words of goroutines that have worked out a block.
type workshop struct{ pool sync.Pool }

// take is words for a plan, and what gives them back.
func (s *workshop) take(n int) (w []bitmap.Words, giveBack func()) {
	kept, _ := s.pool.Get().(*[]bitmap.Words)
	if kept == nil || len(*kept) < n {
		list := make([]bitmap.Words, n)
		kept = &list
	}
	return *kept, func() { s.pool.Put(kept) }
}
