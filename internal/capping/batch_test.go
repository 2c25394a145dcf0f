package capping_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// TestCheckFindsEveryGroupWithoutRules checks that Check finds a group without rules at every position.
// Package storetest tests the other errors of Check with every store.
func TestCheckFindsEveryGroupWithoutRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(1, 256).Draw(t, "groups of rules")
		n := rapid.IntRange(0, 40).Draw(t, "users")
		b := &capping.Batch{
			Users: make([]capping.UserID, n), Groups: rapid.SliceOfN(rapid.Uint8Max(uint8(groups-1)), n, n).Draw(t,
				"groups"),
			Rules: make([][]capping.Rule, groups), Retention: time.Hour,
		}
		require.NoError(t, b.Check(make([]capping.Verdict, n)))
		if n > 0 && groups < 256 {
			b.Groups[rapid.IntRange(0, n-1).Draw(t, "at")] = rapid.Uint8Min(uint8(groups)).Draw(t, "without rules")
			require.ErrorContains(t, b.Check(make([]capping.Verdict, n)), "but has only")
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	const users = 10_000
	batch := &capping.Batch{
		Users: make([]capping.UserID, users), Groups: make([]uint8, users), Rules: make([][]capping.Rule, 5),
		Retention: time.Hour,
	}
	for i := range batch.Groups {
		batch.Groups[i] = uint8(i % 5)
	}
	verdicts := make([]capping.Verdict, users)
	for b.Loop() {
		if err := batch.Check(verdicts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/users, "ns/user")
}
