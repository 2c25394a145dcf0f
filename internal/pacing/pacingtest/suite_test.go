package pacingtest

import (
	"testing"
	"time"

	"capper/internal/pacing"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) pacing.Store { return NewMemory(time.Now) })
}

func TestMemoryIsGreedilyTaken(t *testing.T) {
	t.Parallel()
	RunGreedy(t, NewMemory(time.Now))
}

func TestMemoryOnAClock(t *testing.T) {
	t.Parallel()
	RunOnClock(t, func(_ *testing.T, clock func() time.Time) pacing.Store { return NewMemory(clock) })
}
