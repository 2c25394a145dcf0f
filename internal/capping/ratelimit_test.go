package capping_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestRates(t *testing.T) {
	t.Parallel()
	require.Equal(t, 10, capping.Rate{UsersPerSecond: 10}.Largest())
	require.Equal(t, 50, capping.Rate{UsersPerSecond: 10, Burst: 50}.Largest())
	for _, good := range []capping.Rate{{}, {UsersPerSecond: 1}, {UsersPerSecond: 1, Burst: 1}} {
		require.NoError(t, good.Check())
	}
	for _, bad := range []capping.Rate{{Burst: 1}, {UsersPerSecond: -1}, {UsersPerSecond: 1, Burst: -1}} {
		require.Error(t, bad.Check())
	}
	require.Equal(t, time.Duration(0), capping.Widening(&plainStore{}))
}
