package lookup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// group is a segment or a set that a test publishes.
type group struct {
	name  string
	users *bitmap.Bitmap
}

// publish makes a generation live in the same way as segmentbuild.
func publish(t testing.TB, at objects.Location, created time.Time, segmentGroups, sets []group) *segments.Manifest {
	t.Helper()
	store := func(g group) segments.Segment {
		_, err := at.Put(t.Context(), segments.Describe(g.name, g.users).Key, g.users.Bytes())
		require.NoError(t, err)
		return segments.Describe(g.name, g.users)
	}
	var list []segments.Segment
	for _, g := range segmentGroups {
		list = append(list, store(g))
	}
	var described []segments.Set
	for _, g := range sets {
		described = append(described, segments.Set{Segment: store(g)})
	}
	m, err := segments.NewManifest(created, "test", "", list, described...)
	require.NoError(t, err)
	_, err = at.Put(t.Context(), segments.ManifestKey(m.Generation), m.Encode())
	require.NoError(t, err)
	_, tag, err := at.ReadTagged(t.Context(), segments.CurrentKey, "")
	if err != nil {
		require.ErrorIs(t, err, objects.ErrNotFound)
	}
	_, err = at.Replace(t.Context(), segments.CurrentKey, segments.PointerTo(m).Encode(), tag)
	require.NoError(t, err)
	return m
}

// day returns the time of a test's n-th generation.
func day(n int) time.Time { return segmentstest.Epoch.AddDate(0, 0, n) }

// first publishes the generation for most tests: users 0 to 99 are active, users 90 to 149 are vip
// unless they are active, users 140 to 159 have opted out, and users 10 to 19 are in Singapore.
func first(t testing.TB, at objects.Location) *segments.Manifest {
	t.Helper()
	return publish(t, at, day(0),
		[]group{{"active", bitmap.Range(0, 100)}, {"vip", bitmap.Range(90, 150)}},
		[]group{{"opted-out", bitmap.Range(140, 160)}, {"country/sg", bitmap.Range(10, 20)}})
}
