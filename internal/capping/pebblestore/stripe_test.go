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
		r := rapid.SampledFrom([]runs{denseRuns, imageRuns}).Draw(t, "runs")
		users := capping.AppendUsers(nil, rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0,
			5000)),
			1, 3000, rapid.ID).Draw(t, "users"))
		if r.ofImages() {
			factor := rapid.SampledFrom([]capping.UserID{1, 1 << 20, 1 << 31, 1<<32 + 1, factor}).Draw(t, "factor")
			for i := range users {
				users[i] *= factor
			}
		}
		var p plan
		p.arrange(users, r)
		portions := p.portions(nil)
		var seen []capping.UserID
		next := 0
		for _, k := range portions {
			require.LessOrEqual(t, next, k.first)
			require.Less(t, k.first, k.last)
			next = k.last
			part := p.sortPortion(k)
			require.NotEmpty(t, part)
			before := capping.UserID(0)
			for _, packed := range part {
				user, index := p.user(packed)
				require.Equal(t, users[index], user)
				require.True(t, k.first <= r.stripe(user) && r.stripe(user) < k.last)
				require.True(t, before <= user || r.ofImages() && before>>32 == user>>32)
				before = user
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
			count[denseRuns.stripe(i*step)]++
		}
		require.Less(t, slices.Max(count[:]), int(n)/16, "step %d", step)
	}
}

// TestStripesOfImagesSpread checks that images spread over the stripes, and so do the runs of an ascending audience.
func TestStripesOfImagesSpread(t *testing.T) {
	t.Parallel()
	var random, ascending [stripeCount]int
	const n = 1 << 14
	for i := range capping.UserID(n) {
		random[imageRuns.stripe(imageOf(i))]++
		ascending[imageRuns.stripe(i<<imageRuns)]++
	}
	require.Less(t, slices.Max(random[:]), n/128)
	require.Less(t, slices.Max(ascending[:]), n/128)
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
