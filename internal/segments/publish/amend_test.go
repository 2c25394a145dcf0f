package publish

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// amend publishes sets over the live generation.
func amend(t *testing.T, at objects.Location, add bool, sets ...Set) (*Published, error) {
	t.Helper()
	c := &Candidate{Sets: sets}
	base, err := (&Session{}).ReadForAmend(t.Context(), at, c)
	require.NoError(t, err)
	c, base, err = c.Over(base)
	require.NoError(t, err)
	amended, refusals := c.Amended(base, add, segmentstest.Epoch)
	require.Empty(t, refusals)
	return (&Publisher{Location: at, ToolVersion: "test"}).Publish(t.Context(), amended, base, "")
}

// TestAnAmendReadsAndStoresOnlyItsSets checks which objects an amend touches, and that a missing bitmap
// of another set is an error.
func TestAnAmendReadsAndStoresOnlyItsSets(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, at objects.Location) {
		early, late := segmentstest.Epoch.Add(-2*time.Hour), segmentstest.Epoch.Add(-time.Hour)
		before := publishOver(t, at, withSets(asOf("opted-out", early, 1, 2), asOf("country/sg", early, 7),
			asOf("empty", early)))
		var calls []string
		watched := &hooked{Location: at, before: func(call, key string) {
			if strings.HasPrefix(key, segments.BitmapsPrefix) && call != "list" {
				calls = append(calls, call+" "+key)
			}
		}}
		done, err := amend(t, watched, false, asOf("opted-out", late, 1, 2, 3))
		require.NoError(t, err)
		is := bitmap.Of(1, 2, 3)
		require.Equal(t, []string{segments.BitmapKey(is.SHA256())}, done.Uploaded)
		slices.Sort(calls)
		require.Equal(t, []string{"overwrite " + done.Uploaded[0], "put " + done.Uploaded[0],
			"put " + done.Uploaded[0], "read " + before.Sets[0].Key}, calls)
		g := live(t, at)
		require.Equal(t, before.Segments, g.Manifest.Segments)
		require.Equal(t, before.Sets[1:], g.Manifest.Sets[1:])
		require.Equal(t, []uint32{1, 2, 3}, g.Sets[0].IDs())
		require.Equal(t, late, g.Manifest.Sets[0].AsOf)
		require.Equal(t, late, g.Manifest.Sets[0].AmendedAsOf)

		again, err := amend(t, at, false, asOf("opted-out", late, 1, 2, 3))
		require.NoError(t, err)
		require.True(t, again.Unchanged)
		require.NoError(t, at.Delete(t.Context(), before.Sets[1].Key))
		_, err = amend(t, at, false, asOf("opted-out", late, 1, 2, 3, 4))
		require.ErrorContains(t, err, `the bitmap of "country/sg" is missing or has another size`)
		require.ErrorContains(t, err, "build all segments and sets again")
	})
}

// TestWhichSetsABuildKeeps checks the content and the times of sets that a build and an amend both have.
func TestWhichSetsABuildKeeps(t *testing.T) {
	t.Parallel()
	hour := func(n int) time.Time { return segmentstest.Epoch.Add(time.Duration(n-10) * time.Hour) }
	for name, c := range map[string]struct {
		build      time.Time
		grows      bool
		want       []uint32
		asOf       time.Time
		amended    time.Time
		kept, both bool
	}{
		"an earlier build":           {hour(2), false, []uint32{1, 3}, hour(3), hour(3), true, false},
		"a build of the same time":   {hour(3), false, []uint32{1, 3}, hour(3), hour(3), true, false},
		"a later build":              {hour(4), false, []uint32{1, 2}, hour(4), time.Time{}, false, false},
		"a build without a time":     {time.Time{}, false, []uint32{1, 3}, hour(3), hour(3), true, false},
		"an earlier build of a list": {hour(2), true, []uint32{1, 2, 3}, hour(2), hour(3), true, true},
		"a later build of a list":    {hour(4), true, []uint32{1, 2}, hour(4), time.Time{}, false, false},
		"a build of a list and without a time": {time.Time{}, true, []uint32{1, 2, 3}, time.Time{}, hour(3), true,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := objects.NewDirectory(t.TempDir())
			set := func(asOfTime time.Time, ids ...uint32) Set {
				s := asOf("opted-out", asOfTime, ids...)
				s.Growth = Growth{Said: true, OnlyGrows: c.grows}
				return s
			}
			publishOver(t, at, withSets(set(hour(1), 1)))
			_, err := amend(t, at, false, asOf("opted-out", hour(3), 1, 3))
			require.NoError(t, err)
			base, err := ReadLiveState(t.Context(), at)
			require.NoError(t, err)
			require.True(t, base.Generation.Manifest.Sets[0].OnlyGrows == c.grows)

			built := withSets(set(c.build, 1, 2), asOf("country/sg", hour(5), 9))
			over, base, kept, err := built.KeepAmended(base)
			require.NoError(t, err)
			require.Equal(t, []uint32{1, 2}, built.Sets[0].Bitmap.IDs(), "another base may follow")
			done, err := (&Publisher{Location: at, ToolVersion: "test"}).Publish(t.Context(), over, base, "")
			require.NoError(t, err)
			require.Equal(t, c.want, live(t, at).Sets[0].IDs())
			require.Equal(t, c.asOf, done.Manifest.Sets[0].AsOf)
			require.Equal(t, c.amended, done.Manifest.Sets[0].AmendedAsOf)
			require.Equal(t, c.kept, len(kept) == 1)
			if c.kept {
				require.Equal(t, Kept{"opted-out", c.build, hour(3), uint64(len(c.want)), c.both}, kept[0])
			}
		})
	}
}

// TestAnAmendOfAnEarlierFile checks that an amend never takes back what a later build has published.
func TestAnAmendOfAnEarlierFile(t *testing.T) {
	t.Parallel()
	early, late := segmentstest.Epoch.Add(-2*time.Hour), segmentstest.Epoch.Add(-time.Hour)
	at := objects.NewDirectory(t.TempDir())
	list := asOf("opted-out", late, 1, 2)
	list.Growth = Growth{Said: true, OnlyGrows: true}
	publishOver(t, at, withSets(list, asOf("paused", late, 7)))
	done, err := amend(t, at, false, asOf("opted-out", early, 1, 3))
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 2, 3}, live(t, at).Sets[0].IDs())
	require.Equal(t, early, done.Manifest.Sets[0].AsOf, "the earlier time holds for both")

	c := &Candidate{Sets: []Set{asOf("paused", early, 8)}}
	base, err := (&Session{}).ReadForAmend(t.Context(), at, c)
	require.NoError(t, err)
	_, refusals := c.Amended(base, false, segmentstest.Epoch)
	require.Equal(t, []string{`set "paused" is published with changes up to 2026-11-20T09:15:00Z, but the file ` +
		`contains changes only up to 2026-11-20T08:15:00Z: give a later time with --as-of if the file is right`},
		refusals)

	// Without a time, the start of the amend protects its users.
	done, err = amend(t, at, true, asOf("paused", time.Time{}, 8))
	require.NoError(t, err)
	require.Equal(t, []uint32{7, 8}, live(t, at).Sets[1].IDs())
	require.Zero(t, done.Manifest.Sets[1].AsOf)
	require.Equal(t, segmentstest.Epoch, done.Manifest.Sets[1].AmendedAsOf)
}

// TestWhatLiesBetweenTwoStates checks that only amends let a build repeat its last steps.
func TestWhatLiesBetweenTwoStates(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	hour := func(n int) time.Time { return segmentstest.Epoch.Add(time.Duration(n-10) * time.Hour) }
	state := func() *LiveState {
		s, err := ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		return s
	}
	nothing := state()
	first := publishOver(t, at, withSets(asOf("opted-out", hour(1), 1), asOf("paused", hour(1), 7)))
	built := state()
	since := func(now, before *LiveState) bool {
		amends, err := now.AmendedSince(t.Context(), at, before)
		require.NoError(t, err)
		return amends
	}
	require.False(t, since(built, nothing))
	require.False(t, since(built, built))
	for n := 2; n < 4; n++ {
		_, err := amend(t, at, false, asOf("opted-out", hour(n), 1, uint32(n)))
		require.NoError(t, err)
		require.True(t, since(state(), built), "one or two amends")
	}
	amended := state()
	publishOver(t, at, withSets(amendedSet(amended), asOf("paused", hour(1), 7, 8)))
	require.False(t, since(state(), amended), "a build")
	rollBack(t, at, first.Generation)
	require.False(t, since(state(), amended), "a rollback")
}

// amendedSet returns the first set of a state.
func amendedSet(s *LiveState) Set { return CandidateOf(s.Generation).Sets[0] }
