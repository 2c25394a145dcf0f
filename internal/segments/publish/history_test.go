package publish

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx := t.Context()
		clock := segmentstest.Stepping()
		shared := bitmap.Of(1, 2)
		var generations []string
		for i := range uint32(5) {
			m := publish(t, store, clock, []string{"vip", "new"}, shared, bitmap.Of(10+i))
			generations = append(generations, m.Generation)
		}
		rollBack(t, store, generations[1])
		orphan := bitmap.Of(99)
		_, err := store.Put(ctx, segments.BitmapKey(orphan.SHA256()), orphan.Bytes())
		require.NoError(t, err)
		_, err = store.Put(ctx, "bitmaps/README", []byte("not ours"))
		require.NoError(t, err)

		list, err := List(ctx, store)
		require.NoError(t, err)
		require.Len(t, list, 5)
		require.Equal(t, generations[4], list[0].Generation)
		require.True(t, list[3].Live)

		t.Run("nothing young goes", func(t *testing.T) {
			g, err := collector(store, 1, time.Hour).Find(ctx)
			require.NoError(t, err)
			require.Empty(t, g.Objects)
			require.Len(t, g.Kept, 5)
		})
		later := func(keep int) *Collector {
			c := collector(store, keep, time.Hour)
			c.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
			return c
		}
		t.Run("it shows before it removes", func(t *testing.T) {
			g, err := later(2).Find(ctx)
			require.NoError(t, err)
			require.Equal(t, generations[1], g.Live)
			require.Equal(t, []string{generations[4], generations[3], generations[1]}, g.Kept)
			require.Equal(t, []string{generations[2], generations[0]}, g.Generations)
			var keys []string
			for _, o := range g.Objects {
				keys = append(keys, o.Key)
			}
			require.ElementsMatch(t, []string{segments.ManifestKey(generations[0]),
				segments.ManifestKey(generations[2]),
				segments.BitmapKey(bitmap.Of(10).SHA256()), segments.BitmapKey(bitmap.Of(12).SHA256()),
				segments.BitmapKey(orphan.SHA256())}, keys)
			list, err := List(ctx, store)
			require.NoError(t, err)
			require.Len(t, list, 5, "finding removes nothing")
		})
		t.Run("not when another generation has become live", func(t *testing.T) {
			c := later(1)
			rolled := false
			c.Location = &hooked{Location: store, before: func(call, key string) {
				if call == "delete" && !rolled {
					rolled = true
					base, err := ReadLiveState(ctx, store)
					require.NoError(t, err)
					// as an older tool does
					segmentstest.MakeLive(t, store, segments.Pointer{FormatVersion: segments.FormatVersion,
						Generation: generations[2]}.Encode())
					require.Equal(t, generations[1], base.Name)
				}
			}}
			g, err := c.Remove(ctx)
			require.ErrorIs(t, err, objects.ErrLostRace)
			require.Len(t, g.Objects, 1, "what was removed before it saw")
			segmentstest.MakeLive(t, store, segments.Pointer{FormatVersion: segments.FormatVersion,
				Generation: generations[1]}.Encode())
		})
		t.Run("it removes what nobody needs", func(t *testing.T) {
			g, err := later(2).Remove(ctx)
			require.NoError(t, err)
			for _, name := range g.Kept {
				_, err := segments.ReadGeneration(ctx, store, name)
				require.NoError(t, err)
			}
			left, err := store.List(ctx, segments.BitmapsPrefix)
			require.NoError(t, err)
			require.Len(t, left, 1+3+1, "the shared one, three of the kept generations, and the one that is not ours")
			g, err = later(2).Find(ctx)
			require.NoError(t, err)
			require.Empty(t, g.Objects)
		})
		t.Run("not when a manifest that stays is damaged", func(t *testing.T) {
			require.NoError(t, store.Delete(ctx, segments.ManifestKey(generations[4])))
			_, err := store.Put(ctx, segments.ManifestKey(generations[4]), []byte("{"))
			require.NoError(t, err)
			_, err = later(2).Find(ctx)
			require.ErrorContains(t, err, "cannot read the list of its files")
			list, err := List(ctx, store)
			require.NoError(t, err)
			require.Contains(t, list[0].Fault, "truncated")
		})
	})
}

func collector(store objects.Location, keep int, grace time.Duration) *Collector {
	return &Collector{Location: store, Keep: keep, Grace: grace, Lease: 30 * time.Second}
}

// collect removes all generations except the keep newest, of any age.
func collect(t *testing.T, store objects.Location, keep int) {
	t.Helper()
	c := collector(store, keep, 0)
	c.Clock = func() time.Time { return time.Now().Add(time.Hour) }
	_, err := c.Remove(t.Context())
	require.NoError(t, err)
}

func rollBack(t *testing.T, store objects.Location, generation string) {
	t.Helper()
	base, err := ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	earlier, err := segments.ReadGeneration(t.Context(), store, generation)
	require.NoError(t, err)
	p := Publisher{Location: store}
	done, err := p.Rollback(t.Context(), earlier, base)
	require.NoError(t, err)
	require.False(t, done.Unchanged)
	require.Equal(t, generation, live(t, store).Manifest.Generation)
}

func TestWhatACrashLeftBehindIsGarbage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := objectstest.Open(t, root)
	publish(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
	for _, folder := range []string{"", "bitmaps", "generations"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, folder, objects.TempPrefix+"123"), []byte("half"), 0o644))
	}
	g, err := collector(store, 1, time.Hour).Find(t.Context())
	require.NoError(t, err)
	require.Empty(t, g.Objects, "it may belong to a publish that is under way")
	c := collector(store, 1, time.Hour)
	c.Clock = func() time.Time { return time.Now().Add(25 * time.Hour) }
	g, err = c.Remove(t.Context())
	require.NoError(t, err)
	require.Len(t, g.Objects, 3)
	live(t, store)
}

// collecting runs a garbage collection without a lease between the upload and the swap of a publish.
type collecting struct {
	objects.Location
	collect func()
}

func (c *collecting) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	c.collect()
	return c.Location.Replace(ctx, key, body, tag)
}

func TestACollectionBesideAPublishTakesNothingThatIsLive(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	clock := segmentstest.Stepping()
	old := bitmap.Of(1, 2, 3)
	publish(t, store, clock, []string{"vip"}, old)
	publish(t, store, clock, []string{"vip"}, bitmap.Of(4))
	between := &collecting{Location: store, collect: func() {
		require.NoError(t, store.Delete(t.Context(), segments.BitmapKey(old.SHA256())))
	}}
	publish(t, between, clock, []string{"vip"}, old)
	require.Equal(t, old.Bytes(), live(t, store).Bitmaps[0].Bytes())
}
