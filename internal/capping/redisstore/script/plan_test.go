package script

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

func TestPlanIsByPartitionThenUser(t *testing.T) {
	t.Parallel()
	var plan Plan
	rapid.Check(t, func(r *rapid.T) {
		k := rapid.SampledFrom([]Keyspace{Standard, Spread(MinDepth), Spread(12), Spread(MaxDepth)}).Draw(r, "keyspace")
		ids := rapid.Uint64Max(1<<32 - 1)
		if k.IsSpread() {
			ids = rapid.Uint64()
		}
		var users []capping.UserID
		for _, id := range rapid.SliceOfNDistinct(ids, 0, 1500, rapid.ID[uint64]).Draw(r, "users") {
			users = append(users, capping.UserID(id))
		}
		if rapid.Bool().Draw(r, "ascending") {
			slices.Sort(users)
		}
		plan.Arrange(k, users)
		covered := 0
		for i, part := range plan.Parts {
			require.Equal(r, covered, part.Start)
			require.Greater(r, part.End, part.Start)
			covered = part.End
			require.True(r, i == 0 || plan.Parts[i-1].Partition < part.Partition)
			items := plan.Items[part.Start:part.End]
			byPlace := func(a, b uint64) int { return cmp.Compare(placeOf(a), placeOf(b)) }
			require.True(r, slices.IsSortedFunc(items, byPlace))
			for _, item := range items {
				user := users[indexOf(item)]
				require.Equal(r, k.Bucket(user), k.BucketOf(item))
				require.Equal(r, part.Partition, k.Partition(user))
			}
			if !k.IsSpread() {
				require.True(r, slices.IsSorted(items), "users ascend")
			}
		}
		require.Equal(r, len(users), covered)
		all := slices.Clone(plan.Items)
		slices.SortFunc(all, func(a, b uint64) int { return cmp.Compare(indexOf(a), indexOf(b)) })
		for i, item := range all {
			require.Equal(r, i, indexOf(item))
		}
	})
}
