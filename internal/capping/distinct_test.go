package capping_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

func TestDistinctKeepsFirstOccurrencesInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.SliceOf(rapid.Map(rapid.OneOf(rapid.Uint64Range(0, 50), rapid.Uint64()),
			func(user uint64) capping.UserID { return capping.UserID(user) })).Draw(t, "users")
		var want []capping.UserID
		for _, user := range users {
			if !slices.Contains(want, user) {
				want = append(want, user)
			}
		}
		got, duplicates := capping.Distinct(slices.Clone(users))
		require.Equal(t, want, append([]capping.UserID(nil), got...))
		moved := slices.Clone(users)
		capping.DistinctMoved(slices.Clone(users), func(to, from int) {
			require.Less(t, to, from)
			moved[to] = moved[from]
		})
		require.Equal(t, got, moved[:len(want)])
		require.Equal(t, len(users)-len(want), duplicates)
	})
}

// TestDistinctIsLinearForChosenIDs uses ids that all collide in one slot of a fixed multiplicative hash with
// the golden ratio. With such a hash this test takes minutes.
func TestDistinctIsLinearForChosenIDs(t *testing.T) {
	t.Parallel()
	const ratio = 0x9e3779b97f4a7c15
	inverse := capping.UserID(ratio)
	for range 6 {
		inverse *= 2 - ratio*inverse
	}
	users := make([]capping.UserID, 1_000_000)
	for i := range users {
		users[i] = capping.UserID(len(users)-i) * inverse
	}
	start := time.Now()
	distinct, _ := capping.Distinct(users)
	require.Len(t, distinct, len(users))
	require.Less(t, time.Since(start), 30*time.Second)
}
