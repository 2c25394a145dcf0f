package publish

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
)

// withList returns a candidate of one segment and a list that only grows.
func withList(segment, list *bitmap.Bitmap) *Candidate {
	return &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{segment},
		Sets: []Set{{Name: "opted-out", Bitmap: list, Growth: Growth{Said: true, OnlyGrows: true}}}}
}

func publishOver(t *testing.T, at objects.Location, c *Candidate) *segments.Manifest {
	t.Helper()
	return publishForced(t, at, c, "")
}

func publishForced(t *testing.T, at objects.Location, c *Candidate, reason string) *segments.Manifest {
	t.Helper()
	base, err := ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	done, err := (&Publisher{Location: at, ToolVersion: "test"}).Publish(t.Context(), c, base, reason)
	require.NoError(t, err)
	return done.Manifest
}

// rollBackWith rolls back like the command, and keeps the live sets that only grow.
func rollBackWith(t *testing.T, at objects.Location, generation string) *segments.Manifest {
	t.Helper()
	base, err := ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	earlier, err := segments.ReadGeneration(t.Context(), at, generation)
	require.NoError(t, err)
	plan, err := PlanRollback(earlier, base, nil, nil)
	require.NoError(t, err)
	done, err := (&Publisher{Location: at, ToolVersion: "test"}).RollbackWith(t.Context(), plan, base)
	require.NoError(t, err)
	return done.Manifest
}

// TestARollbackCarriesListsThatOnlyGrow checks that a rollback stores no bitmap again and that older
// readers can read its generation.
func TestARollbackCarriesListsThatOnlyGrow(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, at objects.Location) {
		good := publishOver(t, at, withList(bitmap.Of(1), bitmap.Of(5)))
		bad := publishOver(t, at, withList(bitmap.Of(2), bitmap.Of(5, 6)))
		before, err := at.List(t.Context(), segments.BitmapsPrefix)
		require.NoError(t, err)
		base, err := ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		earlier, err := segments.ReadGeneration(t.Context(), at, good.Generation)
		require.NoError(t, err)
		plan, err := PlanRollback(earlier, base, nil, nil)
		require.NoError(t, err)
		require.Equal(t, []Carried{{Set: "opted-out", Users: 2}}, plan.Carried)
		done, err := (&Publisher{Location: at, ToolVersion: "test"}).RollbackWith(t.Context(), plan, base)
		require.NoError(t, err)
		require.Equal(t, segments.SetsFormatVersion, done.Manifest.FormatVersion,
			"programs from before acceptances read it")
		require.Equal(t, "rollback to "+good.Generation+" with live sets opted-out", done.Manifest.Reason)
		now := live(t, at)
		require.Equal(t, good.Segments, now.Manifest.Segments)
		require.Equal(t, bad.Sets, now.Manifest.Sets)
		after, err := at.List(t.Context(), segments.BitmapsPrefix)
		require.NoError(t, err)
		require.Len(t, after, len(before))
	})
}

// TestAHoldLetsOnlyListsGrow checks that during a hold only users who join a list can be published.
func TestAHoldLetsOnlyListsGrow(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	publishOver(t, at, withList(bitmap.Of(1), bitmap.Of(5)))
	p := &Publisher{Location: at}
	require.NoError(t, p.SetHold(t.Context(), "segments are wrong"))
	base, err := ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	more := withList(bitmap.Of(1), bitmap.Of(5, 6))
	more.Sets = append(more.Sets, Set{Name: "new", Bitmap: bitmap.Of(1)})
	loosened := withList(bitmap.Of(1), bitmap.Of(5, 6))
	loosened.Sets[0].Growth = Growth{Said: true}
	for name, c := range map[string]*Candidate{
		"another segment": withList(bitmap.Of(2), bitmap.Of(5, 6)), "who leaves": withList(bitmap.Of(1), bitmap.Of(6)),
		"a set that is new": more, "a list that may shrink now": loosened,
	} {
		_, err := p.Publish(t.Context(), c, base, "because")
		require.ErrorAs(t, err, new(*HoldError), name)
	}
	_, err = p.Publish(t.Context(), withList(bitmap.Of(1), bitmap.Of(5, 6)), base, "")
	require.NoError(t, err)
	require.Equal(t, []uint32{5, 6}, live(t, at).Sets[0].IDs())
}

// TestAStartPassesOverWhatWasRolledBackFrom checks that a start without a cache neither uses a
// rolled-back generation nor compares with one.
func TestAStartPassesOverWhatWasRolledBackFrom(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, at objects.Location) {
		guarded := segments.Guarded{MayLose: map[string]float64{"stop": segments.DefaultMayLose}}
		requireInUse := func(want *segments.Manifest, refused string) {
			t.Helper()
			r := segments.NewRefresher(segments.RefresherConfig{Source: at,
				Guarded: func() segments.Guarded { return guarded }})
			require.NoError(t, r.Load(t.Context()))
			require.Equal(t, want.Generation, r.Current().Generation())
			require.Equal(t, refused != "", r.Status().Refusal != nil)
			require.Contains(t, r.Status().Error, refused)
		}
		with := func(stop, only *bitmap.Bitmap) *Candidate {
			c := withList(bitmap.Of(1), only)
			c.Sets = append(c.Sets, Set{Name: "stop", Bitmap: stop})
			return c
		}
		some, everybody := bitmap.Range(0, 10), bitmap.Range(0, 10_000)
		good := publishOver(t, at, with(some, bitmap.Of(5)))
		publishOver(t, at, with(everybody, bitmap.Of(5)))
		rollBack(t, at, good.Generation)
		requireInUse(good, "")
		publishForced(t, at, with(everybody, bitmap.Of(5)), "it was right") // controls.json names this one alone then
		rollBack(t, at, good.Generation)
		next := publishOver(t, at, with(bitmap.Range(0, 11), bitmap.Of(5)))
		requireInUse(next, "")

		publishOver(t, at, with(bitmap.Range(0, 20_000), bitmap.Of(5, 6)))
		done := rollBackWith(t, at, next.Generation)
		require.NotEqual(t, next.Generation, done.Generation, "a generation of its own, with the list that grew")
		requireInUse(done, "")

		publishOver(t, at, with(bitmap.Of(), bitmap.Of(5, 6)))
		requireInUse(done, "set stop is empty: all 11 users left")
	})
}
