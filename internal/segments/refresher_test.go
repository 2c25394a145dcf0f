package segments_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
	"capper/internal/testkit"
)

// goLive makes the given segments live, in order of their names' first use.
func goLive(t testing.TB, store objects.Location, clock func() time.Time, names []string,
	bitmaps ...*bitmap.Bitmap) *segments.Manifest {
	t.Helper()
	base, err := publish.ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	p := publish.Publisher{Location: store, ToolVersion: "test", Clock: clock}
	done, err := p.Publish(t.Context(), &publish.Candidate{Names: names, Bitmaps: bitmaps}, base, "")
	require.NoError(t, err)
	return done.Manifest
}

func lookup(s *segments.Snapshot, users ...uint32) []uint8 {
	codes := make([]uint8, len(users))
	s.Lookup(users, codes)
	return codes
}

func TestRefresherFollowsTheLiveGeneration(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
		clock := segmentstest.Stepping()
		source, err := objects.Open(t.Context(), location, objects.S3Config{})
		require.NoError(t, err)
		var swapped []string
		registry := prometheus.NewPedanticRegistry()
		r := segments.NewRefresher(segments.RefresherConfig{Source: source, CacheDir: t.TempDir(), Clock: clock,
			Registerer: registry,
			OnSwap:     func(s *segments.Snapshot) { swapped = append(swapped, s.Generation()) }})

		require.ErrorContains(t, r.Load(t.Context()), location, "nothing is published yet")
		require.Nil(t, r.Current())
		require.NotEmpty(t, r.Status().Error)

		first := goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3, 1<<32-1))
		require.NoError(t, r.Load(t.Context()))
		require.Equal(t, first.Generation, r.Current().Generation())
		require.Equal(t, []string{"vip", "new"}, r.Current().Names())
		require.Equal(t, []uint8{0, 1, 1, 2, 0, 2}, lookup(r.Current(), 0, 1, 2, 3, 4, 1<<32-1))
		require.Equal(t, []segments.SegmentSize{{"vip", 2, 20}, {"new", 2, 28}}, r.Current().Segments())
		status := r.Status()
		require.Equal(t, segments.OriginSource, status.Origin)
		require.Empty(t, status.Error)
		require.Equal(t, first.CreatedAt, status.CreatedAt)

		require.NoError(t, r.Refresh(t.Context()))
		require.Len(t, swapped, 1, "unchanged is no swap")

		second := goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2, 3))
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, []uint8{1, 2, 2}, lookup(r.Current(), 1, 2, 3))

		base, err := publish.ReadLiveState(t.Context(), store)
		require.NoError(t, err)
		earlier, err := segments.ReadGeneration(t.Context(), store, first.Generation)
		require.NoError(t, err)
		_, err = (&publish.Publisher{Location: store}).Rollback(t.Context(), earlier, base)
		require.NoError(t, err)
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, []string{first.Generation, second.Generation, first.Generation}, swapped)

		require.Equal(t, map[string]float64{
			"capper_segments_refresh_total/failed": 1, "capper_segments_refresh_total/swapped": 3,
			"capper_segments_refresh_total/unchanged": 1, "capper_segments_users/new": 2,
			"capper_segments_users/vip":       2,
			"capper_segments_refused/missing": 0, "capper_segments_refused/users": 0, "capper_segments_refused/ids": 0,
			"capper_segments_refused/calls": 0, "capper_segments_refused/as_of": 0,
			"capper_segments_refused/zones":              0,
			"capper_segments_pinned_bytes/":              528, // of the second one, in its grace
			"capper_segments_memory_bytes/":              float64(r.Current().SizeBytes()),
			"capper_segments_checked_timestamp_seconds/": float64(r.Status().BuiltAt.Unix()),
		}, metricsOf(t, registry))
	})
}

// metricsOf returns all metrics except the age, by name and label.
func metricsOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			values[f.GetName()+"/"+label] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	require.Positive(t, values["capper_segments_generation_age_seconds/"])
	delete(values, "capper_segments_generation_age_seconds/")
	return values
}

// plant stores a generation that a publisher would not: spoil changes the
// manifest and the bytes of the bitmaps, whose keys stay as they are.
func plant(t *testing.T, store objects.Location, at time.Time, spoil func(m *segments.Manifest, bodies [][]byte)) {
	t.Helper()
	ctx := t.Context()
	bitmaps := []*bitmap.Bitmap{bitmap.Of(10, 11, 12), bitmap.Of(20, 21, uint32(at.Unix())),
		bitmap.Of(10, uint32(at.Unix())), bitmap.Of(20, 22, uint32(at.Unix()))}
	m, err := segments.NewManifest(at, "test", "", []segments.Segment{segments.Describe("vip", bitmaps[0]),
		segments.Describe("new", bitmaps[1])},
		describe("opted-out", bitmaps[2]), describe("tz/Asia/Tokyo", bitmaps[3]))
	require.NoError(t, err)
	var bodies [][]byte
	for _, b := range bitmaps {
		bodies = append(bodies, bytes.Clone(b.Bytes()))
	}
	name := m.Generation
	spoil(m, bodies)
	if m.Generation == name { // the name vouches for what the manifest says now
		m.Generation = segments.NameOf(m)
		name = m.Generation
	}
	for i, s := range m.Entries() {
		if strings.Contains(s.Key, "..") {
			continue // neither store lets anybody go there
		}
		require.NoError(t, store.Delete(ctx, s.Key))
		if bodies[i] != nil {
			_, err := store.Put(ctx, s.Key, bodies[i])
			require.NoError(t, err)
		}
	}
	_, err = store.Put(ctx, segments.ManifestKey(name), m.Encode())
	require.NoError(t, err)
	segmentstest.MakeLive(t, store, fmt.Appendf(nil, `{"format_version":1,"generation":%q}`, name))
}

// relabel sets the size and the hash in the manifest to those of the bytes, so that only deeper checks
// can find the fault.
func relabel(m *segments.Manifest, bodies [][]byte, i int) {
	s := &m.Segments[i]
	s.SHA256 = segments.Sum(bodies[i])
	s.Key, s.SizeBytes = segments.BitmapKey(s.SHA256), int64(len(bodies[i]))
}

func number(n uint32) *uint32 { return &n }

var faults = []struct {
	name  string
	spoil func(m *segments.Manifest, bodies [][]byte)
	want  string
}{
	{"a flipped bit", func(_ *segments.Manifest, b [][]byte) { b[1][len(b[1])-1] ^= 1 },
		`segment "new": checksum mismatch`},
	{"a flipped bit that the manifest vouches for",
		func(m *segments.Manifest, b [][]byte) { b[0][len(b[0])-2] = 99; relabel(m, b, 0) },
		`segment "vip": bitmap has ids from 10 to 99`},
	{"truncated", func(_ *segments.Manifest, b [][]byte) { b[1] = b[1][:len(b[1])-2] }, "the manifest says"},
	{"truncated, vouched for", func(m *segments.Manifest, b [][]byte) { b[1] = b[1][:len(b[1])-2]; relabel(m, b, 1) },
		"truncated"},
	{"bytes after the end", func(_ *segments.Manifest, b [][]byte) { b[1] = append(b[1], 0) }, `segment "new": `},
	{"bytes after the end, vouched for", func(m *segments.Manifest, b [][]byte) {
		b[1] = append(b[1], 0)
		relabel(m, b,
			1)
	}, "1 extra bytes after the end"},
	{"swapped", func(_ *segments.Manifest, b [][]byte) { b[0], b[1] = b[1], b[0] }, "segment "},
	{"swapped, vouched for", func(m *segments.Manifest, b [][]byte) {
		b[0] = bitmap.Of(20, 21, 22).Bytes()
		relabel(m,
			b, 0)
	}, "bitmap has ids from 20 to 22, but the manifest says 10 to 12"},
	{"missing bitmap", func(_ *segments.Manifest, b [][]byte) { b[0] = nil }, "not found"},
	{"empty bitmap object", func(_ *segments.Manifest, b [][]byte) { b[0] = []byte{} }, "the manifest says"},
	{"not a bitmap", func(m *segments.Manifest, b [][]byte) { b[0] = []byte("hello, world"); relabel(m, b, 0) },
		"not a portable 32-bit roaring bitmap"},
	{"size that lies", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].SizeBytes += 8 }, "the manifest says"},
	{"size of terabytes", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].SizeBytes = 1 << 50 },
		"size_bytes 1125899906842624"},
	{"hash that lies", func(m *segments.Manifest, b [][]byte) {
		m.Segments[1].SHA256 = strings.Repeat("a", 64)
		m.Segments[1].Key = segments.BitmapKey(m.Segments[1].SHA256)
	}, "checksum mismatch"},
	{"hash that is none", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].SHA256 = "../../etc/passwd" },
		"must be 64 lower-case hex digits"},
	{"key elsewhere", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].Key = "bitmaps/../../x" },
		"with this sha256"},
	{"cardinality that lies", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].Cardinality++ },
		"bitmap has 3 users, but the manifest says 4"},
	{"cardinality 0", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].Cardinality = 0 }, "'cardinality' (0)"},
	{"bounds that lie", func(m *segments.Manifest, _ [][]byte) { m.Segments[0].Max = number(13) },
		"bitmap has ids from 10 to 12, but the manifest says 10 to 13"},
	{"no bounds", func(m *segments.Manifest, _ [][]byte) { m.Segments[0].Min = nil }, "'min' and 'max'"},
	{"unknown format version", func(m *segments.Manifest, _ [][]byte) { m.FormatVersion = 6 },
		"format_version 6 is too new: this program reads up to 5"},
	{"no format version", func(m *segments.Manifest, _ [][]byte) { m.FormatVersion = 0 }, "must be at least 1, got 0"},
	{"manifest of another generation",
		func(m *segments.Manifest, _ [][]byte) { m.Generation = "20200101T000000.000Z-00000000" },
		"names another generation"},
	{"no segments", func(m *segments.Manifest, _ [][]byte) { m.Segments = nil }, "no segments"},
	{"segment twice", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].Name = "vip" },
		`name "vip" is given twice`},
	{"segment with the name of none", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].Name = "default" },
		`segment name "default" is reserved`},
	{"segment without name", func(m *segments.Manifest, _ [][]byte) { m.Segments[1].Name = "" }, `segment name ""`},
	{"a set's flipped bit", func(_ *segments.Manifest, b [][]byte) { b[2][len(b[2])-1] ^= 1 },
		`set "opted-out": checksum mismatch`},
	{"a set that is truncated", func(_ *segments.Manifest, b [][]byte) { b[3] = b[3][:len(b[3])-2] },
		"the manifest says"},
	{"bytes after the end of a set", func(_ *segments.Manifest, b [][]byte) { b[2] = append(b[2], 0) },
		`set "opted-out": `},
	{"sets swapped", func(_ *segments.Manifest, b [][]byte) { b[2], b[3] = b[3], b[2] }, "set "},
	{"a set and a segment swapped", func(_ *segments.Manifest, b [][]byte) { b[0], b[2] = b[2], b[0] },
		"the manifest says"},
	{"a set's bitmap that is missing", func(_ *segments.Manifest, b [][]byte) { b[3] = nil }, `set "tz/Asia/Tokyo": `},
	{"a set's empty object", func(_ *segments.Manifest, b [][]byte) { b[2] = []byte{} }, "the manifest says"},
	{"a set's size that lies", func(m *segments.Manifest, _ [][]byte) { m.Sets[0].SizeBytes += 8 },
		"the manifest says"},
	{"a set of terabytes", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].SizeBytes = 1 << 50 },
		"sets[1]: size_bytes 1125899906842624"},
	{"a set's hash that lies", func(m *segments.Manifest, _ [][]byte) {
		m.Sets[1].SHA256 = strings.Repeat("a", 64)
		m.Sets[1].Key = segments.BitmapKey(m.Sets[1].SHA256)
	}, "set \"tz/Asia/Tokyo\": "},
	{"a set's hash that is none", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].SHA256 = "../../etc/passwd" },
		"must be 64 lower-case hex digits"},
	{"a set's key elsewhere", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].Key = "bitmaps/../../x" },
		"with this sha256"},
	{"a key made of a set's name",
		func(m *segments.Manifest, _ [][]byte) { m.Sets[1].Key = "bitmaps/tz/Asia/Tokyo.roaring" },
		"with this sha256"},
	{"a set's cardinality that lies", func(m *segments.Manifest, _ [][]byte) { m.Sets[0].Cardinality++ },
		"bitmap has 2 users, but the manifest says 3"},
	{"a set's bounds that lie", func(m *segments.Manifest, _ [][]byte) { m.Sets[0].Max = number(99) },
		"the manifest says 10 to 99"},
	{"a set without bounds", func(m *segments.Manifest, _ [][]byte) { m.Sets[0].Min = nil }, "'min' and 'max'"},
	{"a set twice", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].Name = "opted-out" },
		`sets[1]: name "opted-out" is given twice`},
	{"a set named like a segment", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].Name = "vip" },
		`name "vip" is given twice`},
	{"a set of a zone that is none", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].Name = "tz/Mars/Olympus" },
		"must be a time zone of the IANA database"},
	{"a set whose name is a path", func(m *segments.Manifest, _ [][]byte) { m.Sets[1].Name = "../x" },
		`set name "../x"`},
	{"a set that loses all", func(m *segments.Manifest, _ [][]byte) {
		m.Sets[0].OnlyGrows, m.Sets[0].MaxLoss = true,
			100
	}, "max_loss"},
	{"sets in the format without", func(m *segments.Manifest, _ [][]byte) { m.FormatVersion = 1 },
		"format_version is 1, but a manifest with 2 sets must have format_version 2"},
	{"no sets in the format with", func(m *segments.Manifest, _ [][]byte) { m.Sets = nil },
		"format_version is 2, but a manifest with 0 sets must have format_version 1"},
	{"no time", func(m *segments.Manifest, _ [][]byte) { m.CreatedAt = time.Time{} }, "created_at"},
}

func TestRefresherKeepsTheLastGoodGeneration(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		good := goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3, 4))
		var log bytes.Buffer
		r := segments.NewRefresher(segments.RefresherConfig{Source: store, CacheDir: t.TempDir(), Clock: clock,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, r.Load(t.Context()))
		stays := func(t *testing.T, want string) {
			t.Helper()
			log.Reset()
			before := r.Status().Error
			require.ErrorContains(t, r.Refresh(t.Context()), want)
			require.Equal(t, good.Generation, r.Current().Generation())
			require.Equal(t, []uint8{1, 1, 2, 2, 0}, lookup(r.Current(), 1, 2, 3, 4, 10))
			status := r.Status()
			require.Contains(t, status.Error, want)
			require.False(t, status.ErrorAt.IsZero())
			require.Equal(t, good.Generation, status.Generation)
			if status.Error != before {
				require.Contains(t, log.String(), "level=ERROR")
			}
		}
		for i, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				plant(t, store, segmentstest.Epoch.Add(time.Duration(i+1)*time.Hour), f.spoil)
				stays(t, f.want)
			})
		}
		for body, want := range map[string]string{
			"": "empty", "\n": "empty", "{": "truncated", "null": "must be at least 1, got 0", "[]": "cannot unmarshal",
			`{"format_version":1,"generation":""}`:                                           `generation ""`,
			`{"format_version":1,"generation":"../../../etc/passwd"}`:                        "must be a name such as 2026",
			`{"format_version":2,"generation":"20261120T101500.000Z-0a1b2c3d"}`:              "format_version 2",
			`{"format_version":1,"generation":"20261120T101500.000Z-0a1b2c3d"}`:              "0a1b2c3d.json: not found",
			`{"format_version":1,"generation":"20261120T101500.000Z-0a1b2c3d"}{}`:            "extra data after the end of the JSON document",
			`{"format_version":1,"generation":"20261120T101500.000Z-0a1b2c3d","x":1}`:        `unknown field "x"`,
			`{"format_version":1,"Generation":"20261120T101500.000Z-0a1b2c3d"}`:              "but must contain",
			`{"format_version":1,"generation":"20261120T101500.000Z-0a1b2c3d","sha256":"1"}`: `sha256 "1": must be 64`,
			fmt.Sprintf(`{"format_version":1,"generation":%q,"sha256":%q}`, good.Generation,
				segments.Sum(nil)): "current.json: sha256 is e3b0c44",
		} {
			segmentstest.MakeLive(t, store, []byte(body))
			stays(t, want)
		}
		require.NoError(t, store.Delete(t.Context(), segments.CurrentKey))
		stays(t, "not found")

		next := goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(5), bitmap.Of(6))
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, next.Generation, r.Current().Generation())
		require.Empty(t, r.Status().Error)
		require.True(t, r.Status().ErrorAt.IsZero())
	})
}

// TestAFaultIsLoggedWhenItChangesAndNowAndThen checks that an unchanged fault is not logged at each
// check of the source.
func TestAFaultIsLoggedWhenItChangesAndNowAndThen(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := follow(t, 0)
	f.Refresher = segments.NewRefresher(segments.RefresherConfig{
		Source: f.store, Clock: func() time.Time { return f.now }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	look := func(want int) {
		t.Helper()
		log.Reset()
		for range 4 {
			f.now = f.now.Add(time.Minute)
			_ = f.Refresh(t.Context())
		}
		require.Equal(t, want, strings.Count(log.String(), "level=ERROR"), log.String())
	}
	look(1)
	require.Contains(t, log.String(), "no generation is loaded yet")
	look(1) // after five minutes
	f.next()
	look(0)
	segmentstest.MakeLive(t, f.store, []byte("{"))
	look(1)
	require.Contains(t, log.String(), "the generation in use stays")
	segmentstest.MakeLive(t, f.store, nil)
	look(1) // another
}

func TestManifestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	list := []segments.Segment{segments.Describe("a", bitmap.Of(1))}
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "because", list)
	require.NoError(t, err)
	raw := m.Encode()
	back, err := segments.ParseManifest(m.Generation, raw)
	require.NoError(t, err)
	require.Equal(t, m, back)
	for n := range raw {
		_, err := segments.ParseManifest(m.Generation, raw[:n])
		require.Error(t, err, "cut off after %d bytes", n)
	}
	later := bytes.Replace(raw, []byte(`"format_version": 1,`),
		[]byte(`"format_version": 6, "added_by_a_later_tool": 1,`), 1)
	_, err = segments.ParseManifest(m.Generation, later)
	require.ErrorContains(t, err, "format_version 6 is too new: this program reads up to 5",
		"the version is what a reader of today is told")
	odd, err := segments.NewManifest(segmentstest.Epoch, "\xff", "<b>\xc3\x28</b> \u2028", list)
	require.NoError(t, err)
	_, err = segments.ParseManifest(odd.Generation, odd.Encode())
	require.NoError(t, err, "a reason may be any text")
}

// failing is a source that fails on request.
type failing struct {
	objects.Source
	broken atomic.Bool
	reads  atomic.Int64 // other than of current.json
	looks  atomic.Int64 // at current.json
}

var errDown = errors.New("connection refused")

func (f *failing) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	if key == segments.CurrentKey {
		f.looks.Add(1)
	}
	if f.broken.Load() {
		return nil, "", errDown
	}
	return f.Source.ReadTagged(ctx, key, tag)
}

func (f *failing) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	f.reads.Add(1)
	if f.broken.Load() {
		return nil, errDown
	}
	return f.Source.Read(ctx, key, limit)
}

func TestStartsFromTheCacheWhileTheSourceIsDown(t *testing.T) {
	t.Parallel()
	clock := segmentstest.Stepping()
	store := objectstest.Open(t, t.TempDir())
	cacheDir := t.TempDir()
	first := goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3))
	src := &failing{Source: store}
	newOne := func() *segments.Refresher {
		return segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir, Clock: clock})
	}
	require.NoError(t, newOne().Load(t.Context()))

	src.broken.Store(true)
	r := newOne()
	require.NoError(t, r.Load(t.Context()))
	require.Equal(t, first.Generation, r.Current().Generation())
	require.Equal(t, []uint8{1, 1, 2, 0}, lookup(r.Current(), 1, 2, 3, 4))
	require.Equal(t, segments.OriginCache, r.Status().Origin)
	require.Contains(t, r.Status().Error, "connection refused")

	src.broken.Store(false)
	src.reads.Store(0)
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, segments.OriginSource, r.Status().Origin, "the source has confirmed it")
	require.Empty(t, r.Status().Error)
	require.Zero(t, src.reads.Load(), "the generation is in memory, nothing is downloaded")

	goLive(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3, 4))
	src.reads.Store(0)
	require.NoError(t, r.Refresh(t.Context()))
	require.EqualValues(t, 2, src.reads.Load(), "the manifest and the one bitmap that changed")
	bitmaps, err := filepath.Glob(filepath.Join(cacheDir, "*", "bitmaps", "*"))
	require.NoError(t, err)
	require.Len(t, bitmaps, 2, "the cache holds one generation")

	t.Run("without a cache", func(t *testing.T) {
		src.broken.Store(true)
		err := segments.NewRefresher(segments.RefresherConfig{Source: src}).Load(t.Context())
		require.ErrorContains(t, err, "connection refused")
		require.ErrorContains(t, err, "no directory for the local copy of the segments is configured")
	})
	t.Run("the cache of another location is not used", func(t *testing.T) {
		other := objectstest.Open(t, t.TempDir())
		require.Error(t, segments.NewRefresher(segments.RefresherConfig{Source: other, CacheDir: cacheDir}).Load(
			t.Context()))
	})
	t.Run("damaged cache", func(t *testing.T) {
		for _, path := range bitmaps {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{7}, 20), 0o644))
		}
		src.broken.Store(true)
		require.ErrorContains(t, newOne().Load(t.Context()), "from the cache")
		src.broken.Store(false)
		require.NoError(t, newOne().Load(t.Context()), "what is damaged there is read from the source")
		src.broken.Store(true)
		require.NoError(t, newOne().Load(t.Context()), "and the cache is whole again")
	})
}

func TestStartsFromTheCacheWhileS3IsDown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close()) // nobody answers there
	location := "s3://segments/prod"
	src, err := objects.Open(t.Context(), location, objects.S3Config{Endpoint: endpoint})
	require.NoError(t, err)
	cacheDir := t.TempDir()
	config := segments.RefresherConfig{Source: src, CacheDir: cacheDir, Timeout: 20 * time.Second}
	require.ErrorContains(t, segments.NewRefresher(config).Load(t.Context()), "connection refused")

	g := segmentstest.Generation(t, []string{"vip"}, bitmap.Of(1))
	require.NoError(t, segments.SaveInCache(t.Context(), cacheDir, location, g))
	r := segments.NewRefresher(config)
	require.NoError(t, r.Load(t.Context()))
	require.Equal(t, segments.OriginCache, r.Status().Origin)
	require.Equal(t, g.Manifest.Generation, r.Current().Generation())
}

func TestAnUnchangedGenerationCostsOneConditionalRead(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		goLive(t, store, clock, []string{"vip"}, bitmap.Of(1, 2))
		src := &failing{Source: store}
		r := segments.NewRefresher(segments.RefresherConfig{Source: src})
		require.NoError(t, r.Load(t.Context()))
		src.looks.Store(0)
		src.reads.Store(0)
		for range 5 {
			require.NoError(t, r.Refresh(t.Context()))
		}
		require.EqualValues(t, 5, src.looks.Load())
		require.Zero(t, src.reads.Load())
	})
}

// toldStatus is a response writer that reports the status of a response before the client has it.
type toldStatus struct {
	http.ResponseWriter
	tell func(code int)
}

func (s *toldStatus) WriteHeader(code int) {
	s.tell(code)
	s.ResponseWriter.WriteHeader(code)
}

func TestARefreshFromS3IsTwoConditionalGETs(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	endpoint := s3test.Proxy(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.ServeHTTP(&toldStatus{w, func(code int) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprintf("%s %s If-None-Match=%v %d", r.Method, path.Base(r.URL.Path),
					r.Header.Get("If-None-Match") != "", code))
			}}, r)
		})
	})
	store, err := objects.Open(t.Context(), "s3://"+s3test.Bucket(t)+"/prod", objects.S3Config{Endpoint: endpoint})
	require.NoError(t, err)
	goLive(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1, 2))
	r := segments.NewRefresher(segments.RefresherConfig{Source: store})
	require.NoError(t, r.Load(t.Context()))
	mu.Lock()
	seen = nil
	mu.Unlock()
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, []string{"GET current.json If-None-Match=true 304", "GET checked.json If-None-Match=true 304"},
		seen)
}

func TestASourceThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, never answers
	require.NoError(t, err)
	defer listener.Close()
	location := "s3://segments/prod"
	src, err := objects.Open(t.Context(), location, objects.S3Config{Endpoint: "http://" + listener.Addr().String()})
	require.NoError(t, err)
	cacheDir := t.TempDir()
	g := segmentstest.Generation(t, []string{"vip"}, bitmap.Of(1))
	require.NoError(t, segments.SaveInCache(t.Context(), cacheDir, location, g))
	r := segments.NewRefresher(segments.RefresherConfig{Source: src, CacheDir: cacheDir, Timeout: 5 * time.Second})
	require.NoError(t, r.Load(t.Context()))
	require.Equal(t, segments.OriginCache, r.Status().Origin)
	require.Contains(t, r.Status().Error, "deadline exceeded")
}

// TestLookupsNeverSeeAMixOfGenerations moves all users to another segment with every generation, so
// that a lookup over two generations would return two codes.
func TestLookupsNeverSeeAMixOfGenerations(t *testing.T) {
	t.Parallel()
	clock := segmentstest.Stepping()
	store := objectstest.Open(t, t.TempDir())
	var users []uint32
	for i := range uint32(20_000) {
		users = append(users, i*97)
	}
	names := []string{"a", "b", "c"}
	all := bitmap.Of(users...)
	generation := func(i int) []*bitmap.Bitmap {
		bitmaps := []*bitmap.Bitmap{bitmap.Of(), bitmap.Of(), bitmap.Of()}
		bitmaps[i%3] = all
		return bitmaps
	}
	expected := sync.Map{} // generation → code
	expect := func(m *segments.Manifest, i int) { expected.Store(m.Generation, uint8(i%3+1)) }
	expect(goLive(t, store, clock, names, generation(0)...), 0)
	r := segments.NewRefresher(segments.RefresherConfig{Source: store, Interval: time.Millisecond,
		CacheDir: t.TempDir()})
	require.NoError(t, r.Load(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(ctx) })
	var swaps atomic.Int64
	for range 2 {
		wg.Go(func() {
			codes := make([]uint8, len(users))
			last := ""
			for ctx.Err() == nil {
				s := r.Current()
				s.Lookup(users, codes)
				want, ok := expected.Load(s.Generation())
				for i, code := range codes {
					if !ok || code != want {
						t.Errorf("generation %s: user %d has code %d, not %v", s.Generation(), users[i], code, want)
						cancel()
						return
					}
				}
				if s.Generation() != last {
					last = s.Generation()
					swaps.Add(1)
				}
			}
		})
	}
	for i := 1; i < 30 && ctx.Err() == nil; i++ {
		c := &publish.Candidate{Names: names, Bitmaps: generation(i)}
		base, err := publish.ReadLiveState(ctx, store)
		require.NoError(t, err)
		p := publish.Publisher{Location: store, ToolVersion: "test", Clock: clock}
		p.Location = &notingStore{Location: store, note: func(m *segments.Manifest) { expect(m, i) }}
		done, err := p.Publish(ctx, c, base, "")
		require.NoError(t, err)
		testkit.Eventually(t, func() bool { return r.Current().Generation() == done.Manifest.Generation })
		testkit.Eventually(t, func() bool { return swaps.Load() > int64(i) }, "somebody looks into it")
	}
	cancel()
	wg.Wait()
	require.Greater(t, swaps.Load(), int64(10))
}

// notingStore is a store that records a manifest before any reader can see it.
type notingStore struct {
	objects.Location
	note func(*segments.Manifest)
}

func (s *notingStore) Overwrite(ctx context.Context, key string, body []byte) error {
	if name, ok := segments.GenerationOf(key); ok {
		m, err := segments.ParseManifest(name, body)
		if err != nil {
			return err
		}
		s.note(m)
	}
	return s.Location.Overwrite(ctx, key, body)
}
