package pacingtest

import (
	"math/rand/v2"
	"testing"
	"time"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) pacing.Store { return NewMemory(time.Now) })
}

// TestASearchForRoomEndsAtItsBound runs histories in which a search finds its slot with the last step before
// pacing.MostLooks. The slot behind all others, which such a search gives up for, once replaced it without a check.
func TestASearchForRoomEndsAtItsBound(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	f := newFixture(t, NewMemory(clock.Now), clock.Now)
	for _, seed := range []uint64{97, 113} {
		runHistories(f, seed, func(rng *rand.Rand) { clock.Advance(jumps[rng.IntN(len(jumps))]) })
	}
	f.judge()
}

func TestMemoryIsGreedilyTaken(t *testing.T) {
	t.Parallel()
	RunGreedy(t, NewMemory(time.Now))
}

func TestMemoryOnAClock(t *testing.T) {
	t.Parallel()
	RunOnClock(t, func(_ *testing.T, clock func() time.Time) pacing.Store { return NewMemory(clock) })
}

func TestMemoryShares(t *testing.T) {
	t.Parallel()
	RunShares(t, func(_ *testing.T, clock func() time.Time) pacing.Store { return NewMemory(clock) }, 1)
}

func TestMemoryWaits(t *testing.T) {
	t.Parallel()
	RunWaits(t, func(_ *testing.T, clock func() time.Time) pacing.Store { return NewMemory(clock) }, 1)
}
