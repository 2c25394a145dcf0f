package pebblestore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// TestPortionsHoldEveryUserOnce checks that each user of a call is in exactly one portion, together with the
// users of the same stripe.
func TestPortionsHoldEveryUserOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 5000)), 1, 3000,
			rapid.ID).Draw(t, "users")
		var p plan
		p.arrange(users)
		portions := p.portions(nil)
		var seen []capping.UserID
		next := 0
		for _, k := range portions {
			require.LessOrEqual(t, next, k.first)
			require.Less(t, k.first, k.last)
			next = k.last
			part := p.users[p.starts[k.first]:p.starts[k.last]]
			require.NotEmpty(t, part)
			for _, packed := range part {
				user := capping.UserID(packed >> 32)
				require.Equal(t, users[uint32(packed)], user)
				require.True(t, k.first <= stripeOf(user) && stripeOf(user) < k.last)
				seen = append(seen, user)
			}
		}
		require.ElementsMatch(t, users, seen)
	})
}

// TestStripesSpread checks that ids with any common step spread over the stripes.
func TestStripesSpread(t *testing.T) {
	t.Parallel()
	for _, step := range []capping.UserID{1, 27, 256, 1000, 1 << 16, 1 << 18} {
		var count [stripeCount]int
		n := capping.UserID(1 << 14)
		for i := range n {
			count[stripeOf(i*step)]++
		}
		require.Less(t, slices.Max(count[:]), int(n)/16, "step %d", step)
	}
}

// TestLargeCall decides hundreds of thousands of users in one call.
func TestLargeCall(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	users := make([]capping.UserID, 150_000)
	for i := range users {
		users[i] = capping.UserID(i) * 28632
	}
	verdicts, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	for i := range verdicts {
		if verdicts[i].Outcome != capping.Allowed {
			t.Fatalf("user %d: %v", users[i], verdicts[i])
		}
	}
	require.NoError(t, s.Close())
}
