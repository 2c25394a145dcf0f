package script

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlanIsByPartitionThenUser(t *testing.T) {
	t.Parallel()
	var plan Plan
	rapid.Check(t, func(r *rapid.T) {
		users := rapid.SliceOfNDistinct(rapid.Uint32(), 0, 1500, rapid.ID[uint32]).Draw(r, "users")
		if rapid.Bool().Draw(r, "ascending") {
			slices.Sort(users)
		}
		plan.Arrange(Standard, users)
		covered := 0
		for i, part := range plan.Parts {
			require.Equal(r, covered, part.Start)
			require.Greater(r, part.End, part.Start)
			covered = part.End
			require.True(r, i == 0 || plan.Parts[i-1].Partition < part.Partition)
			items := plan.Items[part.Start:part.End]
			require.True(r, slices.IsSorted(items))
			for _, item := range items {
				require.Equal(r, users[indexOf(item)], UserOf(item))
				require.Equal(r, part.Partition, Standard.Partition(UserOf(item)))
			}
		}
		require.Equal(r, len(users), covered)
	})
}
