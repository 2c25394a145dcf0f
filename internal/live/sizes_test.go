package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestSizesInCountWhatDecides(t *testing.T) {
	t.Parallel()
	const asOf = 1_000_000
	lists := New(0)
	for at, b := range map[capping.Instant]*Batch{
		asOf - Margin:     {Add: []capping.UserID{1, 2}},
		asOf - Margin + 1: {Add: []capping.UserID{3}},
		asOf:              {Remove: []capping.UserID{4}},
		asOf + 1:          {Remove: []capping.UserID{5, 1}},
		asOf + 2:          {Forget: []capping.UserID{6}},
	} {
		b.Set = "opted-out"
		lists.Apply(RecordOf(b, at))
	}
	lists.Apply(RecordOf(&Batch{Set: "stop", Add: []capping.UserID{7}}, 5))
	builds := map[string]capping.Instant{"opted-out": asOf}
	require.Equal(t, []Size{
		{Set: "opted-out", Additions: 1, Removals: 2, Superseded: 2, Oldest: asOf - Margin + 1, Newest: asOf + 1},
		{Set: "stop", Additions: 1, Oldest: 5, Newest: 5},
	}, lists.SizesIn(func(set string) capping.Instant { return builds[set] }))
	builds["opted-out"] = 2 * asOf
	require.Equal(t, Size{Set: "opted-out", Superseded: 5},
		lists.SizesIn(func(set string) capping.Instant { return builds[set] })[0])
}
