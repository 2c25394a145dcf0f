package segments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
)

// TestADamagedGenerationIsNotDownloadedAgainAndAgain simulates a day with a damaged generation and a
// check every 30 seconds, and on S3 four hours of it: only the answers to checks differ between locations.
func TestADamagedGenerationIsNotDownloadedAgainAndAgain(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
		hours := 24
		if strings.HasPrefix(location, "s3://") {
			hours = 4
		}
		now := segmentstest.Epoch
		clock := func() time.Time { return now }
		first := goLive(t, store, segmentstest.Stepping(), []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2))
		src := &failing{Source: store}
		r := segments.NewRefresher(segments.RefresherConfig{Source: src, Clock: clock, Interval: 30 * time.Second})
		require.NoError(t, r.Load(t.Context()))
		damage := func(at time.Time) {
			plant(t, store, at, func(_ *segments.Manifest, bodies [][]byte) { bodies[0][len(bodies[0])-1] ^= 1 })
		}
		damage(segmentstest.Epoch.Add(time.Hour))
		src.reads.Store(0)
		var attempts []time.Duration
		for range 2 * 60 * hours {
			before := src.reads.Load()
			require.Error(t, r.Refresh(t.Context()))
			if src.reads.Load() > before {
				attempts = append(attempts, now.Sub(segmentstest.Epoch).Round(time.Second))
			}
			now = now.Add(30 * time.Second)
		}
		require.Equal(t, []time.Duration{0, 30 * time.Second, 90 * time.Second, 210 * time.Second, 450 * time.Second,
			930 * time.Second}, attempts[:6])
		require.Less(t, len(attempts), 14+4*hours, "every 15 minutes, in the end")
		require.Contains(t, r.Status().Error, "checksum mismatch")
		require.Contains(t, r.Status().Error, "the next attempt to read this generation is after "+
			now.Format("2006-01-02T"))
		require.Equal(t, first.Generation, r.Current().Generation())

		// When current.json moves it is read at once: a second one that is damaged, and one that is whole.
		damage(segmentstest.Epoch.Add(2 * time.Hour))
		src.reads.Store(0)
		require.Error(t, r.Refresh(t.Context()))
		require.Positive(t, src.reads.Load())
		base, err := publish.ReadLiveState(t.Context(), store)
		require.NoError(t, err)
		p := publish.Publisher{Location: store, ToolVersion: "test"}
		done, err := p.Publish(t.Context(), &publish.Candidate{Names: []string{"vip"},
			Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2, 3)}}, base, "mend")
		require.NoError(t, err)
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, done.Manifest.Generation, r.Current().Generation())
		require.Empty(t, r.Status().Error)
	})
}

// TestASourceThatIsDownIsAskedWithEveryInterval checks that an unreachable source is retried at every
// interval, because a retry costs nothing.
func TestASourceThatIsDownIsAskedWithEveryInterval(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	goLive(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
	src := &failing{Source: store}
	r := segments.NewRefresher(segments.RefresherConfig{Source: src, Clock: segmentstest.Stepping(),
		Interval: time.Hour})
	require.NoError(t, r.Load(t.Context()))
	src.broken.Store(true)
	for range 5 {
		require.ErrorIs(t, r.Refresh(t.Context()), errDown)
	}
	src.broken.Store(false)
	require.NoError(t, r.Refresh(t.Context()))
}
