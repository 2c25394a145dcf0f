package publish

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// nightly publishes a generation for each day before today, the oldest first,
// with a reason where one is given, and returns their names by age in days.
func nightly(t *testing.T, store objects.Location, today time.Time, oldest int, reasons map[int]string) map[int]string {
	return nights(t, store, today, oldest, 0, reasons)
}

func nights(t *testing.T, store objects.Location, today time.Time, oldest, youngest int,
	reasons map[int]string) map[int]string {
	t.Helper()
	names := map[int]string{}
	for age := oldest; age >= youngest; age-- {
		base, err := ReadLiveState(t.Context(), store)
		require.NoError(t, err)
		p := Publisher{Location: store, Clock: func() time.Time { return today.AddDate(0, 0, -age) }}
		done, err := p.Publish(t.Context(), &Candidate{Names: []string{"vip"},
			Bitmaps: []*bitmap.Bitmap{bitmap.Of(uint32(age))}}, base, reasons[age])
		require.NoError(t, err)
		names[age] = done.Manifest.Generation
	}
	return names
}

func TestWhatDriftIsJudgedAgainst(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC)
	later := today.Add(time.Hour)
	find := func(ctx context.Context, t *testing.T, store objects.Location, live string) string {
		controls, err := ReadControls(ctx, store)
		require.NoError(t, err)
		found, err := findEarlier(ctx, store, controls, &LiveState{}, live, later)
		require.NoError(t, err)
		require.Empty(t, found.Skipped)
		if found.Generation == nil {
			return "none"
		}
		return found.Generation.Manifest.Generation
	}
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		require.Equal(t, "none", find(t.Context(), t, store, ""), "nothing is there")
		g := nightly(t, store, today, 10, nil)
		require.Equal(t, g[7], find(t.Context(), t, store, g[0]), "the newest that is a week old")
		require.Equal(t, g[7], find(t.Context(), t, store, g[5]), "a rollback withdrew what is newer")
		require.Equal(t, "none", find(t.Context(), t, store, g[8]), "what is live is older than a week")

		for age := 10; age > 3; age-- { // as gc does
			require.NoError(t, store.Delete(t.Context(), segments.ManifestKey(g[age])))
		}
		require.Equal(t, g[3], find(t.Context(), t, store, g[0]), "all are younger: the oldest")
		require.Equal(t, "none", find(t.Context(), t, store, g[3]), "it is live itself")

		require.NoError(t, store.Delete(t.Context(), segments.BitmapKey(bitmap.Of(3).SHA256())))
		found, err := findEarlier(t.Context(), store, &controls{}, &LiveState{}, g[0], later)
		require.NoError(t, err)
		require.Equal(t, g[2], found.Generation.Manifest.Generation, "the next younger one that can be read")
		require.Len(t, found.Skipped, 1)
		require.Contains(t, found.Skipped[0], g[3]+": ")
	})
	t.Run("a forced generation is where somebody has looked", func(t *testing.T) {
		t.Parallel()
		store := objectstest.Open(t, t.TempDir())
		g := nightly(t, store, today, 10, map[int]string{4: "the campaign is over", 9: "older"})
		require.Equal(t, g[4], find(t.Context(), t, store, g[0]))
		require.Equal(t, "none", find(t.Context(), t, store, g[4]))
		require.Equal(t, g[7], find(t.Context(), t, store, g[5]))
	})
	t.Run("what was rolled back from does not count", func(t *testing.T) {
		t.Parallel()
		store := objectstest.Open(t, t.TempDir())
		g := nights(t, store, today, 9, 7, nil)
		rollBack(t, store, g[8])
		g[0] = nights(t, store, today, 6, 0, nil)[0]
		require.Equal(t, g[8], find(t.Context(), t, store, g[0]))
	})
	t.Run("nor what has the same content", func(t *testing.T) {
		t.Parallel()
		store := objectstest.Open(t, t.TempDir())
		g := nights(t, store, today, 9, 7, nil)
		rollBack(t, store, g[8])
		again := nights(t, store, today.Add(time.Hour), 7, 7, map[int]string{7: "it was right"})
		require.NotEqual(t, g[7], again[7])
		rollBack(t, store, g[8])
		g[0] = nights(t, store, today, 6, 0, nil)[0]
		require.Equal(t, g[8], find(t.Context(), t, store, g[0]))
	})
	t.Run("many generations a day", func(t *testing.T) {
		t.Parallel()
		store := objectstest.Open(t, t.TempDir())
		var names []string
		for i := range 24 * 8 {
			m := segmentstest.Manifest(t, today.Add(-time.Duration(i)*time.Hour), "", []string{"vip"}, bitmap.Of(1))
			_, err := store.Put(t.Context(), segments.ManifestKey(m.Generation), m.Encode())
			require.NoError(t, err)
			names = append(names, m.Generation)
		}
		b := bitmap.Of(1)
		_, err := store.Put(t.Context(), segments.BitmapKey(b.SHA256()), b.Bytes())
		require.NoError(t, err)
		require.Equal(t, names[24*7-1], find(t.Context(), t, store, names[0]), "exactly a week before now")
	})
}
