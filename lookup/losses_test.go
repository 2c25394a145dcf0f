package lookup_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/testkit"
	"capper/lookup"
)

// TestARequiredSetThatLosesUsersIsNotUsed checks that a generation is rejected, also after a restart,
// if a required set lost too many users.
func TestARequiredSetThatLosesUsersIsNotUsed(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, source string, at objects.Location) {
		active := []group{{"active", bitmap.Range(0, 5_000)}}
		lists := func(out, loose *bitmap.Bitmap) []group { return []group{{"opted-out", out}, {"loose", loose}} }
		first := publish(t, at, day(1), active, lists(bitmap.Range(0, 2_000), bitmap.Of(1)))
		cfg := lookup.Config{Source: source, CacheDir: t.TempDir(), Require: []string{"active", "opted-out", "loose"},
			MayLose: map[string]float64{"loose": 100}}
		running := follow(t, cfg)

		publish(t, at, day(2), active, lists(bitmap.Of(), bitmap.Of(1)))
		without := cfg
		without.CacheDir = ""
		for _, f := range []*lookup.Follower{running, follow(t, cfg), follow(t, without)} {
			testkit.Eventually(t, func() bool {
				return strings.Contains(f.Status().Error, "set opted-out is empty: all 2000 users left, but at most "+
					"2 may leave")
			})
			require.Equal(t, first.Generation, f.Current().Name())
			in, err := f.Current().Contains("opted-out", 1_999)
			require.NoError(t, err)
			require.True(t, in)
		}
		next := publish(t, at, day(3), []group{{"active", bitmap.Of(1)}}, lists(bitmap.Range(2, 2_000), bitmap.Of()))
		testkit.Eventually(t, func() bool { return running.Current().Name() == next.Generation })
		require.Empty(t, running.Status().Error)
	})
}

func TestBoundsOfLossesAreChecked(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"other": `"other" must also be listed in Config.Require`,
		"opted-out": `"opted-out": the percentage must be from 0 to 100, got 101`} {
		_, err := lookup.Follow(t.Context(), lookup.Config{Source: t.TempDir(), Require: []string{"opted-out"},
			MayLose: map[string]float64{name: 101}})
		require.ErrorContains(t, err, says)
	}
}
