package segments_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
	"capper/internal/zones"
)

// set returns a set with these users.
func set(name string, users ...uint32) publish.Set {
	return publish.Set{Name: name, Bitmap: bitmap.Of(users...)}
}

// publishSets makes one segment and these sets live.
func publishSets(t testing.TB, store objects.Location, clock func() time.Time, segment *bitmap.Bitmap,
	sets ...publish.Set) *segments.Manifest {
	t.Helper()
	base, err := publish.ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	p := publish.Publisher{Location: store, ToolVersion: "test", Clock: clock}
	done, err := p.Publish(t.Context(), &publish.Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{segment},
		Sets: sets}, base, "")
	require.NoError(t, err)
	return done.Manifest
}

func zonesOf(s *segments.Snapshot, users ...uint32) (names []string) {
	zones := make([]uint16, len(users))
	s.LookupZones(users, zones)
	for _, zone := range zones {
		name := ""
		if zone > 0 {
			name = s.Zones()[zone-1].String()
		}
		names = append(names, name)
	}
	return names
}

func TestSetsAreReadBesideSegments(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		publishSets(t, store, clock, bitmap.Of(1, 2), set("opted-out", 2, 3), set("tz/Asia/Singapore", 1, 2),
			set("nobody"), set("tz/Asia/Tokyo", 2, 3), set("copy", 2, 3))
		registry := prometheus.NewPedanticRegistry()
		r := segments.NewRefresher(segments.RefresherConfig{Source: store, Clock: clock, Registerer: registry})
		require.NoError(t, r.Load(t.Context()))
		s := r.Current()
		require.Equal(t, []uint8{1, 1, 0}, lookup(s, 1, 2, 3), "sets are in no segment")
		require.True(t, s.Set("opted-out").Contains(3))
		require.False(t, s.Set("opted-out").Contains(1))
		require.Zero(t, s.Set("nobody").Cardinality())
		require.Nil(t, s.Set("vip"))
		require.Nil(t, s.Set("unknown"))
		require.Same(t, s.Set("opted-out"), s.Set("copy"), "the same users are in memory once")
		require.Equal(t, []string{"Asia/Singapore", "Asia/Singapore", "Asia/Tokyo", ""}, zonesOf(s, 1, 2, 3, 4),
			"the earlier of two")
		require.Equal(t, "opted-out", s.Sets()[0].Name)
		metrics := metricsOf(t, registry)
		require.InDelta(t, 2, metrics["capper_sets_users/opted-out"], 0)
		require.InDelta(t, 0, metrics["capper_sets_users/nobody"], 0)
		require.InDelta(t, 2, metrics["capper_segments_users/vip"], 0)
	})
}

func TestZonesBeyondOneMapAreFound(t *testing.T) {
	t.Parallel()
	var sets []segments.Set
	g := &segments.Generation{Bitmaps: []*bitmap.Bitmap{bitmap.Of(1)}}
	for i, name := range zones.Names() {
		b := bitmap.Of(uint32(i), uint32(i)+1, 1<<20)
		sets, g.Sets = append(sets, describe("tz/"+name, b)), append(g.Sets, b)
	}
	require.Greater(t, len(sets), 2*255)
	manifest, err := segments.NewManifest(segmentstest.Epoch, "test", "",
		[]segments.Segment{segments.Describe("vip", g.Bitmaps[0])}, sets...)
	require.NoError(t, err)
	g.Manifest = manifest
	s := g.Snapshot()
	for i := range sets {
		want := max(i-1, 0) // the user is in two: the earlier
		require.Equal(t, []string{strings.TrimPrefix(sets[want].Name, "tz/"), sets[0].Name[3:]},
			zonesOf(s, uint32(i), 1<<20))
	}
}

func TestTheCacheKeepsSets(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	src := &failing{Source: store}
	clock, cacheDir := segmentstest.Stepping(), t.TempDir()
	start := func() (*segments.Refresher, error) {
		r := segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir, Clock: clock})
		return r, r.Load(t.Context())
	}
	publishSets(t, store, clock, bitmap.Of(1), set("opted-out", 2, 3), set("tz/Asia/Tokyo", 3))
	r, err := start()
	require.NoError(t, err)
	src.broken.Store(true)
	cached, err := start()
	require.NoError(t, err)
	require.Equal(t, segments.OriginCache, cached.Status().Origin)
	require.True(t, cached.Current().Set("opted-out").Contains(3))
	require.Equal(t, []string{"Asia/Tokyo"}, zonesOf(cached.Current(), 3))

	src.broken.Store(false)
	src.reads.Store(0)
	publishSets(t, store, clock, bitmap.Of(1), set("opted-out", 2, 3, 4), set("tz/Asia/Tokyo", 3))
	require.NoError(t, r.Refresh(t.Context()))
	require.EqualValues(t, 2, src.reads.Load(), "the manifest and the one bitmap that changed")
	files, err := filepath.Glob(filepath.Join(cacheDir, "*", "bitmaps", "*"))
	require.NoError(t, err)
	require.Len(t, files, 3, "the cache holds one generation")

	src.broken.Store(true)
	cached, err = start()
	require.NoError(t, err)
	require.True(t, cached.Current().Set("opted-out").Contains(4))
	for _, file := range files {
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		for damage, body := range map[string][]byte{"cut off": whole[:len(whole)-2],
			"another bit": append(bytes.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1), "gone": nil} {
			require.NoError(t, os.Remove(file))
			if body != nil {
				require.NoError(t, os.WriteFile(file, body, 0o644))
			}
			_, err = start()
			require.ErrorContains(t, err, "from the cache", damage)
			require.NoError(t, os.WriteFile(file, whole, 0o644))
		}
	}
	_, err = start()
	require.NoError(t, err)
}

// TestGenerationsShareWhatIsTheSame checks that equal parts of two generations are read and stored
// once.
func TestGenerationsShareWhatIsTheSame(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		for _, cacheDir := range []string{"", t.TempDir()} {
			t.Run(fmt.Sprintf("cache=%v", cacheDir != ""), func(t *testing.T) {
				clock, src := segmentstest.Stepping(), &failing{Source: store}
				registry := prometheus.NewPedanticRegistry()
				r := segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir, Clock: clock,
					Registerer: registry})
				publishSets(t, store, clock, bitmap.Of(1), set("opted-out", 2, 3), set("tz/Asia/Tokyo", 3))
				require.NoError(t, r.Load(t.Context()))
				first, err := r.Pin(r.Current().Generation())
				require.NoError(t, err)
				next := func(reads int64, segment *bitmap.Bitmap, sets ...publish.Set) *segments.Snapshot {
					t.Helper()
					publishSets(t, store, clock, segment, sets...)
					src.reads.Store(0)
					require.NoError(t, r.Refresh(t.Context()))
					require.Equal(t, reads, src.reads.Load())
					return r.Current()
				}
				second := next(2, bitmap.Of(1), set("opted-out", 2, 3, 4), set("tz/Asia/Tokyo", 3))
				require.Same(t, first.Codes(), second.Codes())
				require.Same(t, first.Set("tz/Asia/Tokyo"), second.Set("tz/Asia/Tokyo"))
				require.NotSame(t, first.Set("opted-out"), second.Set("opted-out"))
				require.Equal(t, &first.Zones()[0], &second.Zones()[0])
				require.InDelta(t, first.Set("opted-out").SizeBytes(),
					metricsOf(t, registry)["capper_segments_pinned_bytes/"], 0,
					"the rest is shared with the one in use")

				third := next(2, bitmap.Of(1, 2), set("opted-out", 2, 3), set("tz/Asia/Tokyo", 3))
				require.NotSame(t, first.Codes(), third.Codes())
				require.Same(t, first.Set("opted-out"), third.Set("opted-out"), "with a pinned one too")
				require.Equal(t, []uint8{1, 1, 0}, lookup(third, 1, 2, 3))
				require.Equal(t, []uint8{1, 0, 0}, lookup(first, 1, 2, 3))

				reads := int64(1)
				if cacheDir != "" {
					reads = 2 // the cache has only the generation before
				}
				fourth := next(reads, bitmap.Of(1), set("stopped", 2, 3), set("tz/Asia/Tokyo", 3))
				require.Same(t, first.Codes(), fourth.Codes())
				require.Same(t, first.Set("opted-out"), fourth.Set("stopped"), "under another name")
				fifth := next(1, bitmap.Of(1), set("stopped", 2, 3), set("tz/Asia/Seoul", 3))
				require.Equal(t, []string{"Asia/Seoul"}, zonesOf(fifth, 3), "another name is another zone")

				reads = 2
				if cacheDir != "" {
					reads = 1 // the segment's bitmap is there
				}
				sixth := next(reads, bitmap.Of(1), set("stopped", 2, 3), set("vips", 1))
				require.Same(t, first.Codes(), sixth.Codes())
				require.True(t, sixth.Set("vips").Contains(1), "a set of the users of a segment is read, although "+
					"that is not")

				if cacheDir != "" {
					src.broken.Store(true)
					cached := segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir,
						Clock: clock})
					require.NoError(t, cached.Load(t.Context()), "the cache has what was not read, too")
					require.Equal(t, sixth.Generation(), cached.Current().Generation())
					require.Equal(t, []uint8{1, 0, 0}, lookup(cached.Current(), 1, 2, 3))
				}
			})
		}
	})
}

func TestACacheThatWasEmptiedIsFilledAgain(t *testing.T) {
	t.Parallel()
	store, cacheDir := objectstest.Open(t, t.TempDir()), t.TempDir()
	clock, src := segmentstest.Stepping(), &failing{Source: store}
	r := segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir, Clock: clock})
	publishSets(t, store, clock, bitmap.Of(1), set("opted-out", 2))
	require.NoError(t, r.Load(t.Context()))
	codes := r.Current().Codes()
	require.NoError(t, os.RemoveAll(cacheDir))
	publishSets(t, store, clock, bitmap.Of(1), set("opted-out", 2, 3))
	require.NoError(t, r.Refresh(t.Context()))
	require.Same(t, codes, r.Current().Codes())
	src.broken.Store(true)
	require.NoError(t, segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir}).Load(
		t.Context()))
}

// TestWhatIsSharedMustAgreeWithTheManifest checks that a manifest with wrong facts about a bitmap in
// memory is rejected as if the bitmap had been read.
func TestWhatIsSharedMustAgreeWithTheManifest(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	clock := segmentstest.Stepping()
	r := segments.NewRefresher(segments.RefresherConfig{Source: store, Clock: clock})
	m := publishSets(t, store, clock, bitmap.Of(1, 5), set("opted-out", 2, 3))
	require.NoError(t, r.Load(t.Context()))
	for name, lie := range map[string]func(*segments.Manifest){
		"of a set's users":        func(m *segments.Manifest) { m.Sets[0].Cardinality++ },
		"of a set's highest user": func(m *segments.Manifest) { m.Sets[0].Max = number(9) },
		"of a set's size":         func(m *segments.Manifest) { m.Sets[0].SizeBytes++ },
		"of a segment's users":    func(m *segments.Manifest) { m.Segments[0].Cardinality++ },
		"of a segment's lowest":   func(m *segments.Manifest) { m.Segments[0].Min = number(0) },
		"of a set with that name": func(m *segments.Manifest) {
			m.Sets[0].SHA256 = m.Segments[0].SHA256
			m.Sets[0].Key = m.Segments[0].Key
		},
		"of a second of that name": func(m *segments.Manifest) { m.Sets = append(m.Sets, m.Sets[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			lying := *m
			lying.Segments, lying.Sets = append([]segments.Segment(nil), m.Segments...), append([]segments.Set(nil),
				m.Sets...)
			lie(&lying)
			lying.CreatedAt = clock().UTC()
			lying.Generation = segments.NameOf(&lying)
			_, err := store.Put(t.Context(), segments.ManifestKey(lying.Generation), lying.Encode())
			require.NoError(t, err)
			segmentstest.MakeLive(t, store, segments.PointerTo(&lying).Encode())
			require.Error(t, r.Refresh(t.Context()))
			require.Equal(t, m.Generation, r.Current().Generation())
		})
	}
}

// TestLocationsFromBeforeSetsAreReadAsBefore reads testdata/format1, which a program without sets has
// written.
func TestLocationsFromBeforeSetsAreReadAsBefore(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(filepath.Join("testdata", "format1"))
	g, err := segmentstest.ReadLive(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, "20261122T124217.236Z-ad7e62ce", g.Manifest.Generation)
	raw, err := os.ReadFile(filepath.Join("testdata", "format1", segments.ManifestKey(g.Manifest.Generation)))
	require.NoError(t, err)
	require.Equal(t, string(raw), string(g.Manifest.Encode()), "and written as before, byte for byte")
	require.Equal(t, g.Manifest.Generation, segments.NameOf(g.Manifest))
	require.Empty(t, g.Manifest.Sets)
	r := segments.NewRefresher(segments.RefresherConfig{Source: store})
	require.NoError(t, r.Load(t.Context()))
	require.Equal(t, []uint8{1, 0, 2, 2, 1}, lookup(r.Current(), 1, 3, 100, 4000, 70_000))
	require.Empty(t, r.Current().Sets())
	require.Empty(t, r.Current().Zones())
	require.Equal(t, g.Manifest.Segments[0], segments.Describe("vip", bitmap.Of(1, 2, 70_000)), "bitmaps too")
}
