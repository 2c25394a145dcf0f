// Package segmentstest gives tests generations that nobody has published.
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

// Epoch is when the tests' first generations are made.
var Epoch = time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC)

// Stepping is a clock that advances by a second with each reading, so that
// every generation of a test has another time in its name.
func Stepping() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return Epoch.Add(time.Duration(n.Add(1)) * time.Second) }
}

// Generation is a generation of the Epoch.
func Generation(t testing.TB, names []string, bitmaps ...*bitmap.Bitmap) *segments.Generation {
	t.Helper()
	return &segments.Generation{Manifest: Manifest(t, Epoch, "", names, bitmaps...), Bitmaps: bitmaps}
}

// Manifest is the manifest of a generation.
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

// MakeLive replaces current.json, which must be there.
func MakeLive(t testing.TB, at objects.Location, body []byte) {
	t.Helper()
	_, tag, err := at.ReadTagged(t.Context(), segments.CurrentKey, "")
	require.NoError(t, err)
	_, err = at.Replace(t.Context(), segments.CurrentKey, body, tag)
	require.NoError(t, err)
}

// ReadLive reads and checks the live generation. The error is segments.ErrNothingLive when nothing was published.
func ReadLive(ctx context.Context, src objects.Source) (*segments.Generation, error) {
	m, err := segments.ReadLiveManifest(ctx, src)
	if err != nil {
		return nil, err
	}
	return m.ReadBitmaps(ctx, src)
}

// WithoutSets is the part of capping.Segments that a generation without sets answers.
type WithoutSets struct{}

// Set finds none.
func (WithoutSets) Set(string) (capping.Set, bool) { return nil, false }

// Zones are none.
func (WithoutSets) Zones() []*time.Location { return nil }

// LookupZones finds none.
func (WithoutSets) LookupZones(users []capping.UserID, zones []uint16) { clear(zones[:len(users)]) }
