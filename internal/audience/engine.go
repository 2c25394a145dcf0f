package audience

import (
	"context"
	"sync/atomic"

	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Engine finds the users that an audience expression selects. An Engine caches, for recently used audiences, the number
// of users in each block (65,536 neighbouring numbers). An Engine is safe for concurrent use.
type Engine struct {
	workshop workshop
	counts   *countCache
}

// DefaultCacheBytes is the default size of an Engine's cache of user counts. With DefaultCacheBytes, the cache can hold
// the counts of about a thousand audiences of 270 million users.
const DefaultCacheBytes = 16 << 20

// NewEngine returns an Engine whose cache of user counts takes at most cacheBytes bytes; 0 means DefaultCacheBytes.
func NewEngine(cacheBytes int) *Engine {
	if cacheBytes <= 0 {
		cacheBytes = DefaultCacheBytes
	}
	return &Engine{counts: newCountCache(cacheBytes)}
}

// Audience represents the users that an expression selects in one generation (published version) of segments. An
// Audience keeps the snapshot of its generation in memory.
type Audience struct {
	engine     *Engine
	snapshot   *segments.Snapshot
	expression string // the expression in canonical form
	plan       *plan
	blocks     int
}

// The method Bind looks up the names of an expression among the segments and sets of a generation. The error of Bind is
// an *UnknownError or an *AmbiguousError.
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

// Generation returns the name of the audience's generation (published version of the segments).
func (a *Audience) Generation() string { return a.snapshot.Generation() }

// Snapshot returns the snapshot of the audience's generation (published version of the segments).
func (a *Audience) Snapshot() *segments.Snapshot { return a.snapshot }

// inBlocks returns the number of the audience's users in each block (65,536 neighbouring numbers). The caller must not
// change the returned slice.
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

// The constant "stretch" is the number of blocks (of 65,536 numbers) that a goroutine evaluates between two checks of
// the caller's context.
const stretch = 16

// The method "each" calls the function "use" for each block with users of the audience, from the block "from" up to,
// but not including, the block "to". The calls of "use" run on all CPU cores at the same time, and in any order. If ctx
// ends, the method "each" stops before all blocks are done.
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
