package segments_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// span returns a bitmap of the users from first to last, inclusive.
func span(first, last uint32) *bitmap.Bitmap { return bitmap.Range(first, last+1) }

type sets map[string]*bitmap.Bitmap

// goLiveWith makes a generation live, an hour after the one before by number.
func goLiveWith(t testing.TB, store objects.Location, hour int, of sets,
	accepted ...segments.Accepted) *segments.Manifest {
	t.Helper()
	return goLiveFor(t, store, hour, "", of, accepted...)
}

// goLiveFor makes a generation live like goLiveWith, with a reason.
func goLiveFor(t testing.TB, store objects.Location, hour int, reason string, of sets,
	accepted ...segments.Accepted) *segments.Manifest {
	t.Helper()
	segment := span(0, 9_999)
	put := func(b *bitmap.Bitmap) segments.Segment {
		s := segments.Describe("all-users", b)
		_, err := store.Put(t.Context(), s.Key, b.Bytes())
		require.NoError(t, err)
		return s
	}
	var list []segments.Set
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := segments.Set{Segment: put(of[name])}
		s.Name = name
		list = append(list, s)
	}
	m, err := segments.NewManifest(segmentstest.Epoch.Add(time.Duration(hour)*time.Hour), "test", reason,
		[]segments.Segment{put(segment)}, list...)
	require.NoError(t, err)
	m, err = m.WithAccepted(accepted)
	require.NoError(t, err)
	require.NoError(t, store.Overwrite(t.Context(), segments.ManifestKey(m.Generation), m.Encode()))
	require.NoError(t, store.Overwrite(t.Context(), segments.CurrentKey, segments.PointerTo(m).Encode()))
	return m
}

// accept returns the acceptance of a change by the generation of an hour.
func accept(hour int, set string, from, to *bitmap.Bitmap) segments.Accepted {
	a := segments.Accepted{Set: set, FromSHA256: from.SHA256(), Before: from.Cardinality(), Removed: from.Cardinality(),
		Change: "-1%", Reason: "meant",
		At: segmentstest.Epoch.Add(time.Duration(hour) * time.Hour)}
	if to != nil {
		a.ToSHA256, a.Removed = to.SHA256(), bitmap.Outside([]*bitmap.Bitmap{from}, []*bitmap.Bitmap{to}, 1)[0]
	}
	return a
}

// guarding is a refresher that guards sets with the default limit, and time zones on request.
type guarding struct {
	cfg     segments.RefresherConfig
	guarded segments.Guarded
}

func newGuarding(t testing.TB, store objects.Source, names ...string) *guarding {
	g := &guarding{guarded: segments.Guarded{MayLose: map[string]float64{}}}
	for _, name := range names {
		g.guarded.MayLose[name] = segments.DefaultMayLose
	}
	day := segmentstest.Epoch.Add(24 * time.Hour)
	g.cfg = segments.RefresherConfig{Source: store, CacheDir: t.TempDir(), Interval: time.Hour,
		Clock:   func() time.Time { return day },
		Guarded: func() segments.Guarded { return g.guarded }}
	return g
}

func (g *guarding) start(t testing.TB) *segments.Refresher {
	t.Helper()
	r := segments.NewRefresher(g.cfg)
	require.NoError(t, r.Load(t.Context()))
	return r
}

// requireKept checks that a generation is not used and that the error gives the reason.
func requireKept(t testing.TB, r *segments.Refresher, inUse *segments.Manifest, says ...string) {
	t.Helper()
	err := r.Refresh(t.Context())
	var refused *segments.RefusedError
	require.ErrorAs(t, err, &refused)
	for _, text := range says {
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, inUse.Generation, r.Current().Generation())
	require.Equal(t, err.Error(), r.Status().Error)
	require.Equal(t, refused.Generation, r.Status().Refusal.Generation)
}

func requireTaken(t testing.TB, r *segments.Refresher, m *segments.Manifest) {
	t.Helper()
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, m.Generation, r.Current().Generation())
	require.Empty(t, r.Status().Error)
	require.Nil(t, r.Status().Refusal)
}

func TestLossesBeyondTheBoundAreRefused(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		out := span(0, 1_999)
		g := newGuarding(t, store, "opted-out", "sms/stop")
		first := goLiveWith(t, store, 0, sets{"opted-out": out, "sms/stop": bitmap.Of(1, 2), "other": out})
		r := g.start(t)
		require.Equal(t, []string{"no earlier generation was found, which is normal after a first publish: segments " +
			"cache is empty, and the location has no earlier generation (published version) of the " +
			"segments"}, r.Status().Unjudged)

		goLiveWith(t, store, 1, sets{"opted-out": bitmap.Of(), "sms/stop": bitmap.Of(1, 2), "other": out})
		requireKept(t, r, first, "set opted-out is empty: all 2000 users left, but at most 2 may leave",
			"roll back to "+first.Generation+", then build with --accept and --force")
		goLiveWith(t, store, 2, sets{"opted-out": span(3, 9_000), "sms/stop": bitmap.Of(1, 2), "other": out})
		// more than before, and not the same
		requireKept(t, r, first, "3 of 2000 users (0.2 %) left set opted-out, but at most 2 may leave")
		goLiveWith(t, store, 3, sets{"opted-out": out, "sms/stop": bitmap.Of(1), "other": out})
		requireKept(t, r, first, "1 of 2 users (50 %) left set sms/stop, but at most 0 may leave")
		require.Equal(t, []string{segments.ReasonUsers}, r.Status().Refusal.Reasons())

		next := goLiveWith(t, store, 4, sets{"opted-out": span(2, 9_000), "sms/stop": bitmap.Of(1, 2, 3),
			"other": bitmap.Of()})
		requireTaken(t, r, next)
		require.Equal(t, segments.Left{Last: 2, Total: 2}, r.Guards()[0].Left, "within the bound, and counted")
		require.Zero(t, r.Guards()[1].Left)
		require.Empty(t, r.Status().Unjudged)
		last := goLiveWith(t, store, 5, sets{"opted-out": span(3, 9_000), "sms/stop": bitmap.Of(1, 2, 3)})
		requireTaken(t, r, last)
		require.Equal(t, segments.Left{Last: 1, Total: 3}, r.Guards()[0].Left)
	})
}

func TestWhatIsRefusedIsNotReadAgain(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	src := &failing{Source: store}
	g := newGuarding(t, src, "opted-out")
	first := goLiveWith(t, store, 0, sets{"opted-out": span(0, 99)})
	r := g.start(t)
	goLiveWith(t, store, 1, sets{"opted-out": span(0, 49)})
	requireKept(t, r, first)
	since := r.Status().Refusal.Since
	for range 3 {
		src.reads.Store(0)
		requireKept(t, r, first, "50 of 100 users")
		require.EqualValues(t, 1, src.reads.Load(), "its manifest, and no bitmap")
	}
	require.Equal(t, since, r.Status().Refusal.Since)
	src.broken.Store(true)
	require.Error(t, r.Refresh(t.Context()))
	require.NotNil(t, r.Status().Refusal, "a source that is away takes nothing back")
	src.broken.Store(false)

	g.guarded = segments.Guarded{MayLose: map[string]float64{"opted-out": 50}}
	require.NoError(t, r.Refresh(t.Context()), "another bound is another question")
	require.Nil(t, r.Status().Refusal)
}

func TestARestartIsNoWayRound(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		src := &failing{Source: store}
		g := newGuarding(t, src, "opted-out")
		g.guarded.Zones = true
		first := goLiveWith(t, store, 0, sets{"opted-out": span(0, 99), "tz/Asia/Singapore": span(0, 9)})
		g.start(t)
		empty := goLiveWith(t, store, 1, sets{"opted-out": bitmap.Of(), "tz/Asia/Singapore": span(0, 9)})
		for range 3 {
			r := g.start(t)
			require.Equal(t, first.Generation, r.Current().Generation())
			require.Equal(t, segments.OriginCache, r.Status().Origin)
			require.Contains(t, r.Status().Error, "set opted-out is empty")
			requireKept(t, r, first)
			require.EqualValues(t, 100, r.Guards()[0].Users)
		}
		goLiveWith(t, store, 2, sets{"opted-out": span(0, 99)})
		requireKept(t, g.start(t), first, "set tz/Asia/Singapore with its 10 users is missing")

		src.broken.Store(true) // as long as it takes
		r := g.start(t)
		require.Equal(t, first.Generation, r.Current().Generation())
		src.broken.Store(false)
		segmentstest.MakeLive(t, store, segments.PointerTo(empty).Encode())
		requireKept(t, r, first, "set opted-out is empty")

	})
}

// TestADamagedCacheIsNoWayRound checks that damaged bitmaps of the cached generation are read from
// the source. If no copy can be read, a generation whose counts show a loss of users is rejected.
func TestADamagedCacheIsNoWayRound(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	g := newGuarding(t, store, "opted-out")
	out := span(0, 99)
	first := goLiveWith(t, store, 0, sets{"opted-out": out})
	r := g.start(t)
	live := goLiveWith(t, store, 1, sets{"opted-out": span(50, 900)})
	cache := segments.CacheOf(r)
	require.NoError(t, cache.Overwrite(t.Context(), segments.BitmapKey(out.SHA256()), []byte("damaged")))
	r = g.start(t)
	require.Equal(t, first.Generation, r.Current().Generation())
	require.Equal(t, segments.OriginSource, r.Status().Origin)
	require.Contains(t, r.Status().Error, "50 of 100 users (50 %) left set opted-out")
	require.Equal(t, segments.OriginCache, g.start(t).Status().Origin, "the copy is mended")

	require.NoError(t, cache.Overwrite(t.Context(), segments.BitmapKey(out.SHA256()), []byte("damaged")))
	require.NoError(t, store.Delete(t.Context(), segments.BitmapKey(out.SHA256())))
	r = g.start(t)
	require.Len(t, r.Status().Unjudged, 1)
	require.Contains(t, r.Status().Unjudged[0], "set opted-out: ")

	g.cfg.CacheDir = t.TempDir()
	goLiveWith(t, store, 2, sets{"opted-out": bitmap.Of()})
	goLiveWith(t, store, 3, sets{"opted-out": span(0, 9)})
	require.NoError(t, store.Delete(t.Context(), segments.ManifestKey(live.Generation)))
	segmentstest.MakeLive(t, store,
		segments.PointerTo(goLiveWith(t, store, 1, sets{"opted-out": bitmap.Of()})).Encode())
	err := segments.NewRefresher(g.cfg).Load(t.Context())
	require.ErrorContains(t, err, "all 100 users left, but at most 0 may leave")
	require.ErrorContains(t, err, "the previous generation (published version) cannot be used: ")
}

// ofGrowth returns an acceptance of joining users in a publish in which other users leave by force.
func ofGrowth(a segments.Accepted) segments.Accepted {
	a.Removed, a.Change = 0, "+300%"
	return a
}

func TestAcceptedLossesPass(t *testing.T) {
	t.Parallel()
	all, grown, half, quarter := span(0, 9_999), span(0, 10_049), span(0, 4_999), span(0, 2_499)
	for _, c := range []struct {
		name     string
		skipped  []*bitmap.Bitmap
		next     *bitmap.Bitmap
		accepted []segments.Accepted
		refused  bool
	}{
		{name: "nothing", next: half, refused: true},
		{name: "this very change", next: half, accepted: []segments.Accepted{accept(9, "opted-out", all, half)}},
		{name: "of another set", next: half, accepted: []segments.Accepted{accept(9, "other", all, half)},
			refused: true},
		{name: "a smaller change", next: quarter, accepted: []segments.Accepted{accept(9, "opted-out", all, half)},
			skipped: []*bitmap.Bitmap{half}, refused: true},
		{name: "a chain", next: quarter, accepted: []segments.Accepted{accept(8, "opted-out", all, half),
			accept(9, "opted-out", half, quarter)}},
		{name: "half a chain", next: quarter, accepted: []segments.Accepted{accept(9, "opted-out", half, quarter)},
			skipped: []*bitmap.Bitmap{half}, refused: true},
		{name: "a chain that goes on within the bound", next: span(5, 9_000),
			accepted: []segments.Accepted{accept(8, "opted-out", all, half)}, skipped: []*bitmap.Bitmap{half}},
		{name: "a chain that goes on beyond it", next: span(6, 9_000),
			accepted: []segments.Accepted{accept(8, "opted-out", all, half)}, skipped: []*bitmap.Bitmap{half},
			refused: true},
		{name: "after a growth that was skipped", next: half,
			accepted: []segments.Accepted{accept(9, "opted-out", grown, half)}, skipped: []*bitmap.Bitmap{grown}},
		{name: "from before the generation in use", next: half,
			accepted: []segments.Accepted{accept(0, "opted-out", grown, half)}, skipped: []*bitmap.Bitmap{grown},
			refused: true},
		{name: "of the users who join alone", next: half,
			accepted: []segments.Accepted{ofGrowth(accept(9, "opted-out", all, half))},
			refused:  true},
		{name: "of another bitmap, as many users", next: span(5_000, 9_999),
			accepted: []segments.Accepted{accept(9, "opted-out", all, half)}, skipped: []*bitmap.Bitmap{half},
			refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := objects.NewDirectory(t.TempDir())
			g := newGuarding(t, store, "opted-out", "other")
			first := goLiveWith(t, store, 1, sets{"opted-out": all, "other": all})
			r := g.start(t)
			for i, b := range c.skipped {
				goLiveWith(t, store, 2+i, sets{"opted-out": b, "other": all})
			}
			next := goLiveWith(t, store, 10, sets{"opted-out": c.next, "other": all}, c.accepted...)
			if c.refused {
				requireKept(t, r, first, "left set opted-out")
				return
			}
			requireTaken(t, r, next)
			require.Equal(t, bitmap.Outside([]*bitmap.Bitmap{all}, []*bitmap.Bitmap{c.next}, 1)[0],
				r.Guards()[0].Left.Last)
		})
	}
}

// TestAnAcceptanceThatCannotBeFollowedIsTriedAgain checks that an unreadable bitmap between two
// generations approves nothing and is read again later.
func TestAnAcceptanceThatCannotBeFollowedIsTriedAgain(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	all, half := span(0, 9_999), span(0, 4_999)
	src := &withoutObject{Source: store, key: segments.BitmapKey(half.SHA256())}
	g := newGuarding(t, src, "opted-out")
	first := goLiveWith(t, store, 1, sets{"opted-out": all})
	r := g.start(t)
	goLiveWith(t, store, 2, sets{"opted-out": half})
	next := goLiveWith(t, store, 3, sets{"opted-out": span(1, 5_500)}, accept(2, "opted-out", all, half))
	src.err = errors.New("just now")
	requireKept(t, r, first)
	src.err = nil
	requireTaken(t, r, next)
}

func TestZonesThatVanishAreRefused(t *testing.T) {
	t.Parallel()
	sg, ny, be := span(0, 899), span(900, 1_899), span(2_000, 11_000)
	zones := func(sg, ny, be *bitmap.Bitmap) sets {
		of := sets{}
		for name, b := range (sets{"tz/Asia/Singapore": sg, "tz/America/New_York": ny, "tz/Europe/Berlin": be}) {
			if b != nil {
				of[name] = b
			}
		}
		return of
	}
	for _, c := range []struct {
		name     string
		next     sets
		accepted []segments.Accepted
		says     string // "": it is taken
	}{
		{name: "as it was", next: zones(sg, ny, be)},
		{name: "one vanishes", next: zones(nil, ny, be), says: "set tz/Asia/Singapore with its 900 users is " +
			"missing, but a rule needs the time zones of users"},
		{name: "one vanishes into another", next: zones(nil, span(0, 1_899), be),
			says: "set tz/Asia/Singapore with its"},
		{name: "one vanishes, accepted", next: zones(nil, span(0, 1_899), be),
			accepted: []segments.Accepted{accept(9, "tz/Asia/Singapore", sg, nil)}},
		{name: "one vanishes, another accepted", next: zones(nil, ny, be),
			accepted: []segments.Accepted{accept(9, "tz/Europe/Berlin", be, nil)},
			says:     "set tz/Asia/Singapore with its"},
		{name: "all vanish", next: sets{"other": sg}, says: "set tz/America/New_York with its"},
		{name: "one empties", next: zones(bitmap.Of(), ny, be), says: "900 of 900 users in set tz/Asia/Singapore " +
			"lose their time zone, but at most 450 may lose it"},
		{name: "one empties, accepted", next: zones(bitmap.Of(), ny, be),
			accepted: []segments.Accepted{accept(9, "tz/Asia/Singapore", sg, bitmap.Of())}},
		{name: "users move", next: zones(bitmap.Of(1), span(2, 1_899), span(1_900, 11_000))},
		{name: "most of one leave", next: zones(span(0, 448), ny, be), says: "451 of 900 users in set " +
			"tz/Asia/Singapore"},
		{name: "half of one leave", next: zones(span(0, 449), ny, be)},
		{name: "a few of each leave", next: zones(span(0, 799), span(900, 1_799), span(2_000, 10_500)),
			says: "700 of 10901 users with a time zone lose it, but at most 5 % may lose it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := objects.NewDirectory(t.TempDir())
			g := newGuarding(t, store)
			first := goLiveWith(t, store, 1, zones(sg, ny, be))
			unguarded := g.start(t)
			g.guarded.Zones = true
			r := g.start(t)
			next := goLiveWith(t, store, 10, c.next, c.accepted...)
			if c.says == "" {
				requireTaken(t, r, next)
				return
			}
			requireKept(t, r, first, c.says)
			require.Equal(t, []string{segments.ReasonZones}, r.Status().Refusal.Reasons())
			g.guarded.Zones = false
			requireTaken(t, unguarded, next)
		})
	}
}

func TestWhoIsInNoZone(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	g := newGuarding(t, store)
	registry := prometheus.NewPedanticRegistry()
	g.cfg.Registerer = registry
	goLiveWith(t, store, 1, sets{"tz/Asia/Singapore": span(0, 4_999), "tz/Europe/Berlin": span(4_000, 6_999),
		"far": span(1<<20, 1<<20+9), "tz/Asia/Tokyo": span(1<<21, 1<<21+5)})
	r := g.start(t)
	require.EqualValues(t, 3_000+10, r.Current().Zoneless())
	require.NotContains(t, strings.Join(slices.Collect(maps.Keys(metricsOf(t, registry))), " "), "zoneless")
	g.guarded.Zones = true
	require.EqualValues(t, 3_010, metricsOf(t, registry)["capper_segments_zoneless_users/"])
	goLiveWith(t, store, 2, sets{"far": span(1<<20, 1<<20+9)})
	g.guarded.Zones = false
	require.NoError(t, r.Refresh(t.Context()))
	require.EqualValues(t, 10_000+10, r.Current().Zoneless())
}

func TestAsOfIsTheNewestConfirmation(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	src := &failing{Source: store}
	g := newGuarding(t, src, "opted-out", "stop")
	at := func(hour int) time.Time { return segmentstest.Epoch.Add(time.Duration(hour) * time.Hour) }
	out := span(0, 99)
	first := goLiveWith(t, store, 1, sets{"opted-out": out, "stop": out})
	r := g.start(t)
	require.Equal(t, at(1), r.AsOf("opted-out"))
	require.Zero(t, r.AsOf("other"))
	goLiveWith(t, store, 2, sets{"opted-out": out, "stop": bitmap.Of()})
	requireKept(t, r, first, "stop")
	require.Equal(t, at(2), r.AsOf("opted-out"), "a generation that is refused for something else has the same users")
	require.Equal(t, at(1), r.AsOf("stop"))

	checked := `{"format_version":1,"generation":"` + first.Generation + `","checked_at":"` +
		at(5).Format(time.RFC3339) + `"}`
	require.NoError(t, store.Overwrite(t.Context(), segments.CheckedKey, []byte(checked)))
	segmentstest.MakeLive(t, store, segments.PointerTo(first).Encode())
	requireTaken(t, r, first)
	require.Equal(t, at(5), r.AsOf("stop"), "a build found it live")
	src.broken.Store(true)
	started := g.start(t)
	require.Equal(t, at(5), started.AsOf("stop"), "and the cache remembers")
	require.Equal(t, at(5), started.Status().BuiltAt)
	src.broken.Store(false)

	check(t, store, goLiveWith(t, store, 100, sets{"opted-out": out, "stop": out}), 100)
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, at(24), r.AsOf("stop"), "no later than now, whatever the clock of a builder")
}

// withoutObject is a source in which one object cannot be read while err is set.
type withoutObject struct {
	objects.Source
	key string
	err error
}

func (w *withoutObject) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	if key == w.key && w.err != nil {
		return nil, w.err
	}
	return w.Source.Read(ctx, key, limit)
}

// TestJudgeComparesWithTheCache checks that Judge reports what a start with the cache would reject.
func TestJudgeComparesWithTheCache(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	g := newGuarding(t, store, "opted-out")
	g.guarded.Zones = true
	judge := func(m *segments.Manifest) ([]string, error) {
		against, unjudged, err := segments.Judge(t.Context(), store, g.cfg.CacheDir, m, g.guarded)
		require.Equal(t, len(unjudged) == 0, against != "")
		return unjudged, err
	}
	first := goLiveWith(t, store, 1, sets{"opted-out": span(0, 99), "tz/Asia/Tokyo": span(0, 9), "other": span(0, 9)})
	unjudged, err := judge(first)
	require.NoError(t, err)
	require.Len(t, unjudged, 1, "neither the cache nor the source has one")
	g.start(t)
	unjudged, err = judge(first)
	require.NoError(t, err)
	require.Empty(t, unjudged)
	_, err = judge(goLiveWith(t, store, 2, sets{"opted-out": span(0, 98), "tz/Asia/Tokyo": span(0, 9)}))
	require.ErrorContains(t, err, "1 of 100 users (1 %) left set opted-out")
	_, err = judge(goLiveWith(t, store, 3, sets{"opted-out": span(0, 99)}))
	require.ErrorContains(t, err, "set tz/Asia/Tokyo with its 10 users is missing")
	require.Equal(t, first.Generation, g.start(t).Current().Generation(), "the cache is as it was")
}

// check records that a complete build found or made a generation live.
func check(t testing.TB, store objects.Location, m *segments.Manifest, hour int) {
	t.Helper()
	checked := fmt.Sprintf(`{"format_version":1,"generation":"%s","checked_at":"%s"}`, m.Generation,
		segmentstest.Epoch.Add(time.Duration(hour)*time.Hour).Format(time.RFC3339))
	require.NoError(t, store.Overwrite(t.Context(), segments.CheckedKey, []byte(checked)))
}

// TestCarryingAlongConfirmsNothing checks that neither a rollback nor a build that only adds users
// confirms the sets that its generation repeats.
func TestCarryingAlongConfirmsNothing(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	g := newGuarding(t, store, "opted-out", "bounced")
	g.cfg.Clock = func() time.Time { return segmentstest.Epoch.Add(100 * time.Hour) }
	at := func(hour int) time.Time { return segmentstest.Epoch.Add(time.Duration(hour) * time.Hour) }
	asOf := func(r *segments.Refresher, optedOut, bounced int) {
		t.Helper()
		require.Equal(t, at(optedOut), r.AsOf("opted-out"))
		require.Equal(t, at(bounced), r.AsOf("bounced"))
	}
	full := goLiveWith(t, store, 1, sets{"opted-out": span(0, 99), "bounced": span(0, 9)})
	check(t, store, full, 1)
	r := g.start(t)
	asOf(r, 1, 1)
	goLiveWith(t, store, 5, sets{"opted-out": span(0, 100), "bounced": span(0, 9)}) // --sets-anyway
	require.NoError(t, r.Refresh(t.Context()))
	asOf(r, 5, 1)
	fresh := *g
	fresh.cfg.CacheDir = t.TempDir()
	asOf(fresh.start(t), 1, 1)

	rolled := goLiveFor(t, store, 7, segments.RollbackReason+full.Generation,
		sets{"opted-out": span(0, 101), "bounced": span(0, 9)})
	require.NoError(t, r.Refresh(t.Context()))
	require.Equal(t, rolled.Generation, r.Current().Generation())
	asOf(r, 1, 1)

	next := goLiveWith(t, store, 9, sets{"opted-out": span(0, 101), "bounced": span(0, 9)})
	check(t, store, next, 9)
	require.NoError(t, r.Refresh(t.Context()))
	asOf(r, 9, 9)
}
