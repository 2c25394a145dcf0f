package segments_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

var errLacking = errors.New("it lacks it")

// needs returns a requirement that rejects every generation without this segment.
func needs(name string) func(*segments.Manifest) error {
	return func(m *segments.Manifest) error {
		for _, s := range m.Segments {
			if s.Name == name {
				return nil
			}
		}
		return fmt.Errorf("segment %q: %w", name, errLacking)
	}
}

func TestAGenerationThatIsRefusedIsNotSwappedIn(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	src := &failing{Source: store}
	clock := segmentstest.Stepping()
	good := goLive(t, store, clock, []string{"vip"}, bitmap.Of(1))
	needed := "vip"
	r := segments.NewRefresher(segments.RefresherConfig{Source: src, Clock: clock, Interval: time.Hour,
		Require: func(m *segments.Manifest) error { return needs(needed)(m) }})
	require.NoError(t, r.Load(t.Context()))
	bad := goLive(t, store, clock, []string{"new"}, bitmap.Of(2))
	for range 5 { // as often as it is asked: what is refused is not left alone for longer and longer
		src.reads.Store(0)
		err := r.Refresh(t.Context())
		require.ErrorIs(t, err, errLacking)
		var refused *segments.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, bad.Generation, refused.Generation)
		require.Equal(t, "generation "+bad.Generation+` is rejected: segment "vip": it lacks it`, r.Status().Error)
		require.EqualValues(t, 1, src.reads.Load(), "its manifest, and no bitmap")
		require.Equal(t, good.Generation, r.Current().Generation())
	}
	needed = "new" // as a reload would ask
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, bad.Generation, r.Current().Generation())
	require.Empty(t, r.Status().Error)
}

func TestAStartPrefersWhatIsNotRefused(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	src := &failing{Source: store}
	clock, cacheDir := segmentstest.Stepping(), t.TempDir()
	start := func(needed string) *segments.Refresher {
		r := segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir, Clock: clock,
			Require: needs(needed)})
		require.NoError(t, r.Load(t.Context()))
		return r
	}
	cached := goLive(t, store, clock, []string{"vip"}, bitmap.Of(1))
	start("vip")
	live := goLive(t, store, clock, []string{"new"}, bitmap.Of(2))

	r := start("vip")
	require.Equal(t, cached.Generation, r.Current().Generation(), "the cache's fulfils it")
	require.Equal(t, segments.OriginCache, r.Status().Origin)
	require.Contains(t, r.Status().Error, live.Generation+" is rejected")
	require.ErrorIs(t, r.Refresh(t.Context()), errLacking)

	src.broken.Store(true)
	r = start("nobody")
	require.Equal(t, cached.Generation, r.Current().Generation(), "the source is down, and the cache has no other")
	require.Contains(t, r.Status().Error, errDown.Error())
	src.broken.Store(false)

	r = start("nobody")
	require.Equal(t, live.Generation, r.Current().Generation(), "neither fulfils it: the source's")
	require.Equal(t, segments.OriginSource, r.Status().Origin)
	require.Equal(t, cached.Generation, start("vip").Current().Generation(),
		"and it has not taken the place of the good copy")
	for range 3 {
		require.Contains(t, r.Status().Error, live.Generation+" is rejected", "said for as long as it is so")
		require.NoError(t, r.Refresh(t.Context()))
	}
	other := goLive(t, store, clock, []string{"new", "nobody"}, bitmap.Of(2), bitmap.Of(3))
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, other.Generation, r.Current().Generation())
	require.Empty(t, r.Status().Error)
}
