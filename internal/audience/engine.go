package audience

import (
	"context"
	"sync/atomic"

	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Engine works out audiences. It keeps how many users of an audience are in each block,
// for those asked for last. It is safe for concurrent use.
type Engine struct {
	workshop workshop
	counts   *countCache
}

// DefaultCacheBytes is what an Engine keeps unless told otherwise: the counts of
// about a thousand audiences of 270 million users.
const DefaultCacheBytes = 16 << 20

// NewEngine is an engine that keeps up to so many bytes of counts; 0: DefaultCacheBytes.
func NewEngine(cacheBytes int) *Engine {
	if cacheBytes <= 0 {
		cacheBytes = DefaultCacheBytes
	}
	return &Engine{counts: newCountCache(cacheBytes)}
}

// Audience is the users of an expression in one generation, which it keeps in memory.
type Audience struct {
	engine     *Engine
	snapshot   *segments.Snapshot
	expression string // in one way of writing it
	plan       *plan
	blocks     int
}

// Bind finds the names of an expression in a generation. The error is an
// *UnknownError or an *AmbiguousError.
func (g *Engine) Bind(e *Expression, s *segments.Snapshot) (*Audience, error) {
	p, err := namesOf(s, e.named).bind(e)
	if err != nil {
		return nil, err
	}
	a := &Audience{engine: g, snapshot: s, expression: e.String(), plan: p, blocks: s.Codes().Blocks()}
	for _, set := range s.Sets() {
		a.blocks = max(a.blocks, s.Set(set.Name).Blocks())
	}
	return a, nil
}

// Generation names the generation.
func (a *Audience) Generation() string { return a.snapshot.Generation() }

// Snapshot is the generation.
func (a *Audience) Snapshot() *segments.Snapshot { return a.snapshot }

// inBlocks is how many users of the audience are in each block. It is not the caller's to change.
func (a *Audience) inBlocks(ctx context.Context) ([]uint32, error) {
	return a.engine.counts.get(ctx, countKey{a.Generation(), a.expression}, func() ([]uint32, error) {
		counts := make([]uint32, a.blocks)
		err := a.each(ctx, 0, a.blocks, func(key int, d *desk, extent bitmap.Extent) {
			if extent == bitmap.Everything {
				counts[key] = bitmap.BlockIDs
			} else {
				counts[key] = uint32(d.words[0].Count())
			}
		})
		return counts, err
	})
}

// stretch is how many blocks a goroutine works out between two looks at the context.
const stretch = 16

// each calls use for each block from … to-1 with a user of the audience, on all cores
// and in no order. It ends early when ctx does.
func (a *Audience) each(ctx context.Context, from, to int, use func(key int, d *desk, extent bitmap.Extent)) error {
	var stopped atomic.Bool
	parallel.OnAllCores((to-from+stretch-1)/stretch, func(i int) {
		if stopped.Load() || ctx.Err() != nil {
			stopped.Store(true)
			return
		}
		d := a.engine.workshop.take(a.plan)
		defer a.engine.workshop.giveBack(d)
		for key := from + i*stretch; key < min(to, from+(i+1)*stretch); key++ {
			if extent := a.plan.eval(key, d.words); extent != bitmap.Nothing {
				use(key, d, extent)
			}
		}
	})
	if stopped.Load() {
		return ctx.Err()
	}
	return nil
}
