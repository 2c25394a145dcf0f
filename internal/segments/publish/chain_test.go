package publish

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// TestAcceptancesAreAChain checks that a reader that skips generations can follow the acceptances from
// its list to the live one.
func TestAcceptancesAreAChain(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	now := segmentstest.Epoch
	was := bitmap.Range(0, 100)
	goLive := func(list *bitmap.Bitmap, accept bool) *segments.Manifest {
		c := withList(bitmap.Of(1), list)
		if accept {
			c.Accepted = []segments.Accepted{{Set: "opted-out", FromSHA256: was.SHA256(), ToSHA256: list.SHA256(),
				Before: was.Cardinality(), Removed: 10, Change: "-10", Reason: "because"}}
		}
		base, err := ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		done, err := (&Publisher{Location: at, ToolVersion: "test", Clock: func() time.Time { return now }}).Publish(
			t.Context(), c, base, "")
		require.NoError(t, err)
		was, now = list, now.Add(time.Hour)
		return done.Manifest
	}
	first := goLive(was, false)
	goLive(bitmap.Range(10, 100), true)
	goLive(bitmap.Range(10, 101), false)
	m := goLive(bitmap.Range(20, 101), true)
	require.Len(t, m.Accepted, 3)
	from, removed := first.Sets[0].SHA256, uint64(0)
	for _, a := range m.Accepted {
		require.Equal(t, from, a.FromSHA256)
		from, removed = a.ToSHA256, removed+a.Removed
	}
	require.Equal(t, m.Sets[0].SHA256, from)
	require.EqualValues(t, 20, removed)

	// As it was before an acceptance, the list must not be lost by it once more.
	m = goLive(bitmap.Range(10, 101), false)
	require.Len(t, m.Accepted, 1)
	require.Empty(t, goLive(bitmap.Range(0, 100), false).Accepted)

	// No more than a manifest holds.
	for i := range uint32(80) {
		m = goLive(bitmap.Range(i+1, 200+2*i), true)
		goLive(bitmap.Range(i+1, 201+2*i), false)
	}
	require.Len(t, m.Accepted, segments.MaxAccepted)
	require.Equal(t, m.CreatedAt, m.Accepted[segments.MaxAccepted-1].At)
}

// TestALossByForceEndsAcceptances checks that acceptances do not cover users who left later through a
// forced publish.
func TestALossByForceEndsAcceptances(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	first := publishOver(t, at, withList(bitmap.Of(1), bitmap.Range(0, 100)))
	accepting := func(from *segments.Manifest, list *bitmap.Bitmap, removed uint64) *Candidate {
		c := withList(bitmap.Of(1), list)
		c.Accepted = []segments.Accepted{{Set: "opted-out", FromSHA256: from.Sets[0].SHA256, ToSHA256: list.SHA256(),
			Before: from.Sets[0].Cardinality, Removed: removed, Change: "-10", Reason: "because"}}
		return c
	}
	m := publishForced(t, at, accepting(first, bitmap.Range(10, 100), 10), "for something else")
	require.Len(t, m.Accepted, 1)
	m = publishForced(t, at, withList(bitmap.Of(2), bitmap.Range(10, 101)), "no list")
	require.Len(t, m.Accepted, 1, "nobody has left")
	m = publishForced(t, at, withList(bitmap.Of(2), bitmap.Range(20, 101)), "no list")
	require.Empty(t, m.Accepted)
	m = publishOver(t, at, accepting(m, bitmap.Range(21, 101), 1))
	require.Len(t, m.Accepted, 1, "and no link")
}

func TestARollbackUndoesAcceptances(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	good := publishOver(t, at, withList(bitmap.Of(1), bitmap.Range(0, 100)))
	lost := withList(bitmap.Of(1), bitmap.Range(50, 100))
	lost.Accepted = []segments.Accepted{{Set: "opted-out", FromSHA256: good.Sets[0].SHA256,
		ToSHA256: lost.SHA256("opted-out"),
		Before:   100, Removed: 50, Change: "-50%", Reason: RollbackReason + "before"}}
	publishOver(t, at, lost)
	publishOver(t, at, withList(bitmap.Of(2), bitmap.Range(50, 101)))
	base, err := ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	require.Len(t, base.manifest.Accepted, 1)
	earlier, err := segments.ReadGeneration(t.Context(), at, good.Generation)
	require.NoError(t, err)
	plan, err := PlanRollback(earlier, base, nil, nil)
	require.NoError(t, err)
	require.True(t, plan.Carried[0].Joined)
	done, err := (&Publisher{Location: at, ToolVersion: "test"}).RollbackWith(t.Context(), plan, base)
	require.NoError(t, err)
	require.EqualValues(t, 101, done.Manifest.Sets[0].Cardinality)
	require.Empty(t, done.Manifest.Accepted)
}
