package segments_test

import (
	"testing"
	"time"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestAnUnchangedRunLeavesASign checks that the list, the status and the metric show a nightly run
// without changes. A location of an older tool shows nothing.
func TestAnUnchangedRunLeavesASign(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx := t.Context()
		now := segmentstest.Epoch
		p := publish.Publisher{Location: store, ToolVersion: "test", Clock: func() time.Time { return now }}
		run := func() *publish.Published {
			base, err := publish.ReadLiveState(ctx, store)
			require.NoError(t, err)
			done, err := p.Publish(ctx, &publish.Candidate{Names: []string{"vip"},
				Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2, 3)}}, base, "")
			require.NoError(t, err)
			return done
		}
		run()
		registry := prometheus.NewPedanticRegistry()
		r := segments.NewRefresher(segments.RefresherConfig{Source: store, Registerer: registry})
		require.NoError(t, r.Load(ctx))
		seen := func() {
			require.NoError(t, r.Refresh(ctx))
			require.True(t, now.Equal(r.Status().BuiltAt), "%s", r.Status().BuiltAt)
			require.InDelta(t, now.Unix(), metricsOf(t, registry)["capper_segments_checked_timestamp_seconds/"], 0)
			list, err := publish.List(ctx, store)
			require.NoError(t, err)
			require.True(t, now.Equal(*list[0].CheckedAt))
		}
		seen()
		now = now.Add(24 * time.Hour)
		require.True(t, run().Unchanged)
		seen()

		require.NoError(t, store.Delete(ctx, segments.CheckedKey)) // as it is where only older tools have published
		require.NoError(t, r.Refresh(ctx))
		require.Zero(t, r.Status().BuiltAt)
		list, err := publish.List(ctx, store)
		require.NoError(t, err)
		require.Nil(t, list[0].CheckedAt)
		require.NotContains(t, metricsOf(t, registry), "capper_segments_checked_timestamp_seconds/")

		_, err = store.Put(ctx, segments.CheckedKey, []byte("{"))
		require.NoError(t, err)
		require.NoError(t, r.Refresh(ctx), "a sign that cannot be read is no fault of the segments")
	})
}
