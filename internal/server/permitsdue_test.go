package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/pacing"
)

// TestPermitsAreDueWhenTheirSlotsCome compares the counts with those of single permits.
func TestPermitsAreDueWhenTheirSlotsCome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, int64(rapid.IntRange(0, 999_999).Draw(t, "now"))*1000)
		var runs []pacing.WaitRun
		var slots []time.Time
		every := rapid.SampledFrom([]int{0, 1, 4000, 333_334, 1_000_000, 2_500_000})
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			r := pacing.WaitRun{
				Wait:    time.Duration(rapid.IntRange(-2_000_000, 9_000_000).Draw(t, "wait")) * time.Microsecond,
				Every:   time.Duration(every.Draw(t, "every")) * time.Microsecond,
				Burst:   rapid.IntRange(1, 5).Draw(t, "burst"),
				Permits: rapid.IntRange(1, 40).Draw(t, "permits"),
			}
			runs = append(runs, r)
			for k := range r.Permits {
				slots = append(slots, now.Add(r.WaitOf(k)))
			}
		}
		fresh := rapid.IntRange(0, len(slots)).Draw(t, "fresh")
		d, counted := due{}, 0
		d.add(now, runs, fresh)
		for later := time.Duration(0); later < 120*time.Second; later += 700 * time.Millisecond {
			at, want := now.Add(later), 0
			counted += d.take(at)
			for _, slot := range slots[len(slots)-fresh:] {
				if slot.Add(time.Second-1).Unix() <= at.Unix() {
					want++
				}
			}
			require.Equal(t, want, counted)
		}
		require.Equal(t, fresh, counted)
		require.Empty(t, d)
	})
}
