package pebblestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

func openPacing(t *testing.T) pacing.Store {
	s, err := Open(t.Context(), Config{Path: t.TempDir(), Clock: time.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestPacing(t *testing.T) {
	t.Parallel()
	pacingtest.Run(t, openPacing)
}

func TestPacingOnAClock(t *testing.T) {
	t.Parallel()
	pacingtest.RunOnClock(t, func(t *testing.T, clock func() time.Time) pacing.Store {
		return openDefault(t,
			clock).(*Store)
	})
}

func TestShares(t *testing.T) {
	t.Parallel()
	pacingtest.RunShares(t, func(t *testing.T, clock func() time.Time) pacing.Store {
		return openDefault(t, clock).(*Store)
	}, 7)
}

func TestWaits(t *testing.T) {
	t.Parallel()
	pacingtest.RunWaits(t, func(t *testing.T, clock func() time.Time) pacing.Store {
		return openDefault(t, clock).(*Store)
	}, 3)
}

func TestPacingIsGreedilyTaken(t *testing.T) {
	t.Parallel()
	pacingtest.RunGreedy(t, openPacing(t))
}
