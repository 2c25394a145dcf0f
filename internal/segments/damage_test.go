package segments_test

import (
	"bytes"
	"os"
	"path/filepath"
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

// tampering changes a manifest in plausible ways: every field still agrees with the bitmaps.
var tampering = []struct{ name, old, new string }{
	{"another segment's name", `"name": "new"`, `"name": "old"`},
	{"another reason", `"reason": "because"`, `"reason": "why not"`},
	{"no reason", "  \"reason\": \"because\",\n", ""},
	{"another tool", `"tool_version": "test"`, `"tool_version": "best"`},
	{"another time", `"created_at": "2026`, `"created_at": "2025`},
	{"another zone", `:15:01Z"`, `:15:01+00:00"`},
	{"another key", `"reason"`, `"comment": "", "reason"`},
	{"another key in a segment", `"name": "new"`, `"name": "new", "weight": 1`},
	{"a key twice", `"name": "new"`, `"name": "vip", "name": "new"`},
	{"a key in capitals", `"segments"`, `"Segments"`},
	{"another layout", `"name": "new"`, `"name":  "new"`},
	{"an escape", `"name": "new"`, `"name": "n\u0065w"`},
	{"another line at the end", "}\n", "}\n\n"},
}

// published returns a directory with one generation that was forced, and its root.
func published(t *testing.T) (root string, store *objects.Directory, m *segments.Manifest) {
	t.Helper()
	root = t.TempDir()
	store = objects.NewDirectory(root)
	p := publish.Publisher{Location: store, ToolVersion: "test", Clock: segmentstest.Stepping()}
	done, err := p.Publish(t.Context(), &publish.Candidate{Names: []string{"vip", "new"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2), bitmap.Of(3, 4)}}, &publish.LiveState{}, "because")
	require.NoError(t, err)
	return root, store, done.Manifest
}

// exchange swaps two strings in a document.
func exchange(raw []byte, a, b string) []byte {
	return []byte(strings.NewReplacer(a, b, b, a).Replace(string(raw)))
}

func TestAManifestCannotChangeUnderItsName(t *testing.T) {
	t.Parallel()
	root, store, m := published(t)
	path := filepath.Join(root, segments.ManifestKey(m.Generation))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	check := func(t *testing.T, raw []byte) {
		require.NotEqual(t, string(whole), string(raw))
		require.NoError(t, os.WriteFile(path, raw, 0o644))
		requireRefused(t, store, m.Generation)
	}
	t.Run("names exchanged", func(t *testing.T) { check(t, exchange(whole, `"vip"`, `"new"`)) })
	t.Run("order exchanged", func(t *testing.T) {
		reversed := *m
		reversed.Segments = []segments.Segment{m.Segments[1], m.Segments[0]}
		check(t, reversed.Encode())
	})
	for _, change := range tampering {
		t.Run(change.name, func(t *testing.T) {
			check(t, []byte(strings.ReplaceAll(string(whole), change.old, change.new)))
		})
	}
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	_, err = segmentstest.ReadLive(t.Context(), store)
	require.NoError(t, err)
}

// requireRefused checks that every way of reading rejects the live generation.
func requireRefused(t *testing.T, store *objects.Directory, generation string) {
	t.Helper()
	ctx := t.Context()
	_, err := segments.ReadManifest(ctx, store, generation)
	require.Error(t, err)
	_, err = segments.ReadGeneration(ctx, store, generation)
	require.Error(t, err, "what a roll-back reads")
	_, err = segmentstest.ReadLive(ctx, store)
	require.Error(t, err)
	_, err = segments.LoadFromCache(ctx, store)
	require.Error(t, err)
	state, err := publish.ReadLiveState(ctx, store)
	require.NoError(t, err)
	require.Error(t, state.Fault, "what a publish compares with")
	list, err := publish.List(ctx, store)
	require.NoError(t, err)
	require.NotEmpty(t, list[0].Fault)
	require.Nil(t, list[0].Manifest)
	_, err = (&publish.Collector{Location: store, Keep: 1, Clock: func() time.Time { return segmentstest.Epoch }}).Find(
		ctx)
	require.Error(t, err)
	r := segments.NewRefresher(segments.RefresherConfig{Source: store})
	require.Error(t, r.Load(ctx))
	require.Nil(t, r.Current())
}

func TestNoBitOfTheDocumentsCanChange(t *testing.T) {
	t.Parallel()
	noBitOfTheDocumentsCanChange(t, func(i int) []int { return []int{i % 8} })
}

// noBitOfTheDocumentsCanChange turns each of the bits over that bits returns for a byte.
func noBitOfTheDocumentsCanChange(t *testing.T, bits func(i int) []int) {
	root, store, m := published(t)
	path := filepath.Join(root, segments.ManifestKey(m.Generation))
	for _, path := range []string{path, filepath.Join(root, segments.CurrentKey)} {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for i := range whole {
			for _, bit := range bits(i) {
				raw := bytes.Clone(whole)
				raw[i] ^= 1 << bit
				require.NoError(t, os.WriteFile(path, raw, 0o644))
				_, err := segments.ReadLiveManifest(t.Context(), store)
				require.Error(t, err, "%s, byte %d, bit %d: %s", filepath.Base(path), i, bit, raw)
			}
		}
		require.NoError(t, os.WriteFile(path, whole, 0o644))
	}
	live, err := segments.ReadLiveManifest(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, m, live)
}

// TestCurrentVouchesForTheManifest checks that current.json identifies the exact bytes of the live
// manifest, so that another manifest with the same hash in its name is rejected.
func TestCurrentVouchesForTheManifest(t *testing.T) {
	t.Parallel()
	root, store, m := published(t)
	other := goLive(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(9))
	current := string(segments.PointerTo(other).Encode())
	require.NoError(t, os.WriteFile(filepath.Join(root, segments.CurrentKey),
		[]byte(strings.ReplaceAll(current, other.Generation, m.Generation)), 0o644))
	_, err := segmentstest.ReadLive(t.Context(), store)
	require.ErrorContains(t, err, "current.json: sha256 is "+segments.SumOf(other)+
		", but the manifest of generation (published version) "+
		m.Generation+" has "+segments.SumOf(m))
	list, err := publish.List(t.Context(), store)
	require.NoError(t, err)
	for _, l := range list {
		require.Equal(t, l.Live, l.Fault != "", l.Generation)
	}

	state, err := publish.ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	require.Error(t, state.Fault)
	g, err := segments.ReadGeneration(t.Context(), store, m.Generation)
	require.NoError(t, err)
	done, err := (&publish.Publisher{Location: store}).Rollback(t.Context(), g, state)
	require.NoError(t, err)
	require.False(t, done.Unchanged, "a roll-back to what is damaged there mends it")
	_, err = segmentstest.ReadLive(t.Context(), store)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(root, segments.CurrentKey),
		[]byte("{ \"format_version\":1,\n\"generation\":\""+m.Generation+"\"}"), 0o644))
	_, err = segmentstest.ReadLive(t.Context(), store)
	require.NoError(t, err, "one without the sum, in any layout, is fine")
}

func TestADamagedManifestInTheCacheIsRefused(t *testing.T) {
	t.Parallel()
	_, store, _ := published(t)
	src := &failing{Source: store}
	cacheDir := t.TempDir()
	config := segments.RefresherConfig{Source: src, CacheDir: cacheDir}
	require.NoError(t, segments.NewRefresher(config).Load(t.Context()))
	manifests, err := filepath.Glob(filepath.Join(cacheDir, "*", "generations", "*.json"))
	require.NoError(t, err)
	require.Len(t, manifests, 1)
	raw, err := os.ReadFile(manifests[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifests[0], exchange(raw, `"vip"`, `"new"`), 0o644))

	src.broken.Store(true)
	r := segments.NewRefresher(config)
	require.ErrorContains(t, r.Load(t.Context()), "damaged")
	require.Nil(t, r.Current())
	src.broken.Store(false)
	require.NoError(t, r.Load(t.Context()))
	src.broken.Store(true)
	require.NoError(t, segments.NewRefresher(config).Load(t.Context()), "the cache is whole again")
}

func TestNotFoundMeansNothingWasEverPublished(t *testing.T) {
	t.Parallel()
	fresh := func(t *testing.T) (config segments.RefresherConfig, root string, store *objects.Directory) {
		root, store, _ = published(t)
		config = segments.RefresherConfig{Source: store, CacheDir: t.TempDir()}
		require.NoError(t, segments.NewRefresher(config).Load(t.Context()))
		return config, root, store
	}
	load := func(t *testing.T, config segments.RefresherConfig) error {
		err := segments.NewRefresher(config).Load(t.Context())
		require.Error(t, err)
		return err
	}
	remove := func(t *testing.T, pattern ...string) {
		list, err := filepath.Glob(filepath.Join(pattern...))
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, path := range list {
			require.NoError(t, os.RemoveAll(path))
		}
	}
	t.Run("nothing", func(t *testing.T) {
		objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
			require.ErrorIs(t, load(t, segments.RefresherConfig{Source: store, CacheDir: t.TempDir()}),
				objects.ErrNotFound)
			require.ErrorIs(t, load(t, segments.RefresherConfig{Source: store}), objects.ErrNotFound)
		})
	})
	t.Run("source down, no cache", func(t *testing.T) {
		config, _, store := fresh(t)
		down := &failing{Source: store}
		down.broken.Store(true)
		err := load(t, segments.RefresherConfig{Source: down, CacheDir: config.CacheDir + "/new"})
		require.NotErrorIs(t, err, objects.ErrNotFound)
		require.ErrorIs(t, err, errDown)
	})
	t.Run("source gone, cache damaged", func(t *testing.T) {
		for _, part := range []string{"current.json", "generations/*", "bitmaps/*"} {
			config, root, _ := fresh(t)
			remove(t, root)
			remove(t, config.CacheDir, "*", part)
			require.NotErrorIs(t, load(t, config), objects.ErrNotFound, part)
		}
	})
	t.Run("source damaged, no cache", func(t *testing.T) {
		for _, part := range []string{"current.json", "generations/*", "bitmaps/*"} {
			config, root, _ := fresh(t)
			remove(t, root, part)
			config.CacheDir = ""
			require.NotErrorIs(t, load(t, config), objects.ErrNotFound, part)
		}
	})
}

// TestPublishingAgainMendsADamagedBitmap checks that publishing the same users again replaces a
// damaged bitmap that has the right name and size.
func TestPublishingAgainMendsADamagedBitmap(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx := t.Context()
		clock := segmentstest.Stepping()
		m := goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3, 4))
		damage := func() {
			raw, err := store.Read(ctx, m.Segments[1].Key, 1<<20)
			require.NoError(t, err)
			raw[len(raw)-1] ^= 1
			require.NoError(t, store.Delete(ctx, m.Segments[1].Key))
			_, err = store.Put(ctx, m.Segments[1].Key, raw)
			require.NoError(t, err)
			_, err = segments.ReadGeneration(ctx, store, m.Generation)
			require.ErrorContains(t, err, "checksum mismatch")
		}
		damage()
		goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3, 4))
		_, err := segmentstest.ReadLive(ctx, store)
		require.NoError(t, err, "damaged while it was live")

		goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(5, 6))
		damage()
		goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3, 4))
		_, err = segmentstest.ReadLive(ctx, store)
		require.NoError(t, err, "damaged while it was history")
	})
}
