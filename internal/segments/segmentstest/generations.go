// Package segmentstest helps tests to make generations (published versions of segments and sets) without a publish.
package segmentstest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/segments"
)

// Epoch is the creation time of the first generations (published versions) in tests.
var Epoch = time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC)

// Stepping returns a clock that advances by one second with each reading. Each generation (published version) in a test
// therefore has a different time in its name.
func Stepping() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return Epoch.Add(time.Duration(n.Add(1)) * time.Second) }
}

// The function Generation returns a generation (published version) with the given names and bitmaps of segments, and
// with the creation time Epoch.
func Generation(t testing.TB, names []string, bitmaps ...*bitmap.Bitmap) *segments.Generation {
	t.Helper()
	return &segments.Generation{Manifest: Manifest(t, Epoch, "", names, bitmaps...), Bitmaps: bitmaps}
}

// Manifest returns the manifest of a generation (published version) with the given segments.
func Manifest(t testing.TB, at time.Time, reason string, names []string, bitmaps ...*bitmap.Bitmap) *segments.Manifest {
	t.Helper()
	var list []segments.Segment
	for i, name := range names {
		list = append(list, segments.Describe(name, bitmaps[i]))
	}
	m, err := segments.NewManifest(at, "test", reason, list)
	require.NoError(t, err)
	return m
}

// MakeLive replaces the content of current.json. The object current.json must exist.
func MakeLive(t testing.TB, at objects.Location, body []byte) {
	t.Helper()
	_, tag, err := at.ReadTagged(t.Context(), segments.CurrentKey, "")
	require.NoError(t, err)
	_, err = at.Replace(t.Context(), segments.CurrentKey, body, tag)
	require.NoError(t, err)
}

// ReadLive reads and checks the live generation (published version that current.json names). If nothing has been
// published, the error of ReadLive is segments.ErrNothingLive.
func ReadLive(ctx context.Context, src objects.Source) (*segments.Generation, error) {
	m, err := segments.ReadLiveManifest(ctx, src)
	if err != nil {
		return nil, err
	}
	return m.ReadBitmaps(ctx, src)
}

// WithoutSets implements the methods of capping.Segments for sets and time zones, for a generation (published version)
// without sets.
type WithoutSets struct{ capping.DenseIDs }

// The method Set returns false, because the generation (published version) has no sets.
func (WithoutSets) Set(string) (capping.Set, bool) { return nil, false }

// Zones returns no zones.
func (WithoutSets) Zones() []*time.Location { return nil }

// LookupZones sets every zone to 0 (no time zone).
func (WithoutSets) LookupZones(numbers []uint32, zones []uint16) { clear(zones[:len(numbers)]) }
