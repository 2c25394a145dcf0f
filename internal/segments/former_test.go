package segments_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// reading is a source that records which keys were read.
type reading struct {
	objects.Source

	mu   sync.Mutex
	keys []string
}

func (r *reading) note(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, key)
}

func (r *reading) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	r.note(key)
	return r.Source.Read(ctx, key, limit)
}

func (r *reading) List(ctx context.Context, prefix string) ([]objects.Object, error) {
	r.note(prefix)
	return r.Source.List(ctx, prefix)
}

// sinceLast returns the sorted keys that were read since the previous call.
func (r *reading) sinceLast() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.Sorted(slices.Values(r.keys))
	r.keys = nil
	return keys
}

// TestAStartWithoutACacheComparesWithTheSource checks that a start with no or an empty cache compares
// with the preceding generation of the source, and uses that generation if the live one is rejected.
func TestAStartWithoutACacheComparesWithTheSource(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		out, zone := span(0, 1_999), span(0, 9)
		g := newGuarding(t, store, "opted-out")
		g.guarded.Zones = true
		first := goLiveWith(t, store, 0, sets{"opted-out": out, "tz/Asia/Tokyo": zone})
		goLiveWith(t, store, 1, sets{"opted-out": bitmap.Of(), "tz/Asia/Tokyo": zone})
		with, without := g.cfg.CacheDir, ""
		for _, g.cfg.CacheDir = range []string{without, with} {
			r := g.start(t)
			require.Equal(t, first.Generation, r.Current().Generation())
			require.Equal(t, segments.OriginSource, r.Status().Origin)
			require.Empty(t, r.Status().Unjudged)
			require.Equal(t, []string{segments.ReasonUsers}, r.Status().Refusal.Reasons())
			require.EqualValues(t, 2_000, r.Guards()[0].Users)
			requireKept(t, r, first, "set opted-out is empty: all 2000 users left, but at most 2 may leave")
		}
		require.Equal(t, segments.OriginCache, g.start(t).Status().Origin, "it is cached by now")

		g.cfg.CacheDir = without
		r := g.start(t)
		good := goLiveWith(t, store, 2, sets{"opted-out": span(0, 2_999), "tz/Asia/Tokyo": zone})
		requireTaken(t, r, good)
		requireTaken(t, g.start(t), good) // more than the empty one before it

		lost := goLiveWith(t, store, 3, sets{"opted-out": span(0, 2_999)})
		r = g.start(t)
		requireKept(t, r, good, "set tz/Asia/Tokyo with its 10 users")
		g.guarded.Zones = false
		requireTaken(t, r, lost)

		half := span(0, 999)
		accepted := goLiveWith(t, store, 4, sets{"opted-out": half}, accept(4, "opted-out", span(0, 2_999), half))
		r = g.start(t)
		require.Equal(t, accepted.Generation, r.Current().Generation(), "the publisher accepted this change")
		require.Empty(t, r.Status().Unjudged)
	})
}

// TestAStartReadsOnlyWhatDiffers checks that a start without a cache reads only the differing guarded
// sets of the preceding generation.
func TestAStartReadsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	src := &reading{Source: store}
	g := newGuarding(t, src, "opted-out", "same")
	g.cfg.CacheDir = ""
	var manifests []string
	for hour := range 3 {
		m := goLiveWith(t, store, hour, sets{"opted-out": span(0, 99), "same": span(7, 8),
			"other": span(0, uint32(hour))})
		manifests = append(manifests, segments.ManifestKey(m.Generation))
	}
	before := goLiveWith(t, store, 3, sets{"opted-out": span(0, 100), "same": span(7, 8), "other": span(5, 6)})
	goLiveWith(t, store, 4, sets{"opted-out": span(0, 101), "same": span(7, 8), "other": span(0, 6)})
	guarded := g.guarded
	g.guarded = segments.Guarded{}
	g.start(t)
	want := append(append(src.sinceLast(), manifests...), segments.GenerationsPrefix,
		segments.ManifestKey(before.Generation), segments.BitmapKey(span(0, 100).SHA256()),
		segments.BitmapKey(span(0, 99).SHA256()))
	g.guarded = guarded
	require.Empty(t, g.start(t).Status().Unjudged)
	require.Equal(t, slices.Sorted(slices.Values(want)), src.sinceLast())
}

// TestAStartAfterARollbackComparesWithWhatIsEarlier checks that a start ignores generations that are
// newer than the live one.
func TestAStartAfterARollbackComparesWithWhatIsEarlier(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	g := newGuarding(t, store, "opted-out")
	g.cfg.CacheDir = ""
	oldest := goLiveWith(t, store, 0, sets{"opted-out": span(0, 99)})
	older := goLiveWith(t, store, 1, sets{"opted-out": span(0, 199)})
	newer := goLiveWith(t, store, 2, sets{"opted-out": span(0, 999)})
	for _, m := range []*segments.Manifest{older, oldest, newer} {
		segmentstest.MakeLive(t, store, segments.PointerTo(m).Encode())
		r := g.start(t)
		require.Equal(t, m.Generation, r.Current().Generation())
		require.Equal(t, m == oldest, len(r.Status().Unjudged) > 0)
	}
}

func TestAStartThatCannotReadWhatIsEarlier(t *testing.T) {
	t.Parallel()
	out := span(0, 1_999)
	for _, c := range []struct {
		name     string
		damage   func(second *segments.Manifest) (key, body string)
		inUse    string   // "first", "second", "third"
		unjudged []string // parts
	}{
		{name: "nothing is wrong", inUse: "second"},
		{name: "who was rolled back is not known", damage: func(*segments.Manifest) (string, string) {
			return segments.ControlsKey, `{"format_version": 9}`
		}, inUse: "third", unjudged: []string{"segments cache is not configured",
			"read the list of rolled-back generations (published versions) of " +
				"the segments: controls.json: format_version must be 1, got 9"}},
		{name: "the newest manifest is damaged", damage: func(second *segments.Manifest) (string, string) {
			return segments.ManifestKey(second.Generation), "{"
		}, inUse: "first"},
		{name: "the list of the newest is damaged", damage: func(*segments.Manifest) (string, string) {
			return segments.BitmapKey(span(0, 2_000).SHA256()), "{"
		}, inUse: "first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := objects.NewDirectory(t.TempDir())
			g := newGuarding(t, store, "opted-out")
			g.cfg.CacheDir = ""
			first := goLiveWith(t, store, 0, sets{"opted-out": out})
			second := goLiveWith(t, store, 1, sets{"opted-out": span(0, 2_000)})
			third := goLiveWith(t, store, 2, sets{"opted-out": bitmap.Of()})
			if c.damage != nil {
				key, body := c.damage(second)
				require.NoError(t, store.Overwrite(t.Context(), key, []byte(body)))
			}
			r := g.start(t)
			require.Equal(t, map[string]string{"first": first.Generation, "second": second.Generation,
				"third": third.Generation}[c.inUse], r.Current().Generation())
			require.Len(t, r.Status().Unjudged, len(c.unjudged))
			for i, part := range c.unjudged {
				require.Contains(t, r.Status().Unjudged[i], part)
			}
		})
	}
	t.Run("they cannot be listed", func(t *testing.T) {
		t.Parallel()
		store := objects.NewDirectory(t.TempDir())
		g := newGuarding(t, &unlisted{store}, "opted-out")
		goLiveWith(t, store, 0, sets{"opted-out": out})
		live := goLiveWith(t, store, 1, sets{"opted-out": bitmap.Of()})
		r := g.start(t)
		require.Equal(t, live.Generation, r.Current().Generation())
		require.Contains(t, r.Status().Unjudged[1],
			"list the earlier generations (published versions) of the segments: forbidden")
	})
}

// unlisted is a source that does not allow listing.
type unlisted struct{ objects.Source }

func (*unlisted) List(context.Context, string) ([]objects.Object, error) {
	return nil, errors.New("forbidden")
}

// TestAStartLooksBehindGenerationsThatLostTheList checks that a start does not compare with a
// generation that lost a list and was never used.
func TestAStartLooksBehindGenerationsThatLostTheList(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]sets{"missing": {"optedout": span(0, 1_999)},
		"empty": {"opted-out": bitmap.Of()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := objects.NewDirectory(t.TempDir())
			g := newGuarding(t, store, "opted-out")
			g.cfg.CacheDir = ""
			first := goLiveWith(t, store, 0, sets{"opted-out": span(0, 1_999)})
			goLiveWith(t, store, 1, lost)
			goLiveWith(t, store, 2, sets{"opted-out": bitmap.Of(), "country/sg": span(0, 9)})
			require.Equal(t, first.Generation, g.start(t).Current().Generation())
			goLiveWith(t, store, 3, sets{"opted-out": span(0, 1_000)})
			require.Equal(t, first.Generation, g.start(t).Current().Generation())
			good := goLiveWith(t, store, 4, sets{"opted-out": span(0, 2_000)})
			require.Equal(t, good.Generation, g.start(t).Current().Generation())
		})
	}
}

// TestAStartTakesAListThatIsNew checks that a list without an earlier version is accepted as new.
func TestAStartTakesAListThatIsNew(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	g := newGuarding(t, store, "opted-out", "bounced")
	g.cfg.CacheDir = ""
	first := goLiveWith(t, store, 0, sets{"opted-out": span(0, 1_999)})
	fresh := goLiveWith(t, store, 1, sets{"opted-out": span(0, 1_999), "bounced": span(0, 9)})
	require.Equal(t, fresh.Generation, g.start(t).Current().Generation())
	goLiveWith(t, store, 2, sets{"opted-out": span(0, 9), "bounced": span(0, 9), "newer": span(0, 1)})
	require.Equal(t, fresh.Generation, g.start(t).Current().Generation())
	g.guarded.MayLose["newer"] = 0
	require.NotEqual(t, first.Generation, g.start(t).Current().Generation(),
		"the newest one is compared where none has every list")
}

// TestAStartComparesWithNoGenerationThatLostUsersItself checks that a start rejects a loss that was
// published repeatedly, like a running service.
func TestAStartComparesWithNoGenerationThatLostUsersItself(t *testing.T) {
	t.Parallel()
	zones := func(tokyo, rome *bitmap.Bitmap) sets {
		return sets{"opted-out": span(0, 9), "tz/Asia/Tokyo": tokyo, "tz/Europe/Rome": rome}
	}
	out := func(to uint32) sets { return sets{"opted-out": span(0, to)} }
	half := span(0, 999)
	for name, test := range map[string]struct {
		published []sets
		accepted  map[int][]segments.Accepted
		inUse     int
	}{
		"published twice":       {published: []sets{out(1_999), out(999), out(999)}},
		"and users joined then": {published: []sets{out(1_999), out(999), out(1_000), out(1_003), out(1_050)}},
		"hidden by who joined": {published: []sets{out(1_999), {"opted-out": span(1_000, 5_000)},
			{"opted-out": span(1_000, 5_001)}}},
		"then emptied":       {published: []sets{out(1_999), out(999), {"opted-out": bitmap.Of()}, out(999)}},
		"after a good one":   {published: []sets{out(1_999), out(2_050), out(999), out(999)}, inUse: 1},
		"mended":             {published: []sets{out(1_999), out(999), out(999), out(2_000)}, inUse: 3},
		"mended, lost again": {published: []sets{out(1_999), out(999), out(2_005), out(999), out(999)}, inUse: 2},
		"within the bound":   {published: []sets{out(1_999), out(1_997), out(1_996), out(1_995)}, inUse: 3},
		"accepted": {published: []sets{out(1_999), out(999), out(1_000)}, inUse: 2,
			accepted: map[int][]segments.Accepted{
				1: {accept(1, "opted-out", span(0, 1_999), half)}, 2: {accept(1, "opted-out", span(0, 1_999), half)}}},
		"a zone twice": {published: []sets{zones(span(0, 99), span(100, 900)), zones(span(0, 9), span(100, 900)),
			zones(span(0, 9), span(100, 900))}},
		"of all zones twice": {published: []sets{zones(span(0, 999), span(1_000, 1_999)),
			zones(span(0, 899), span(1_000, 1_899)), zones(span(0, 899), span(1_000, 1_900))}},
		"a zone that vanished": {published: []sets{zones(span(0, 99), span(100, 900)),
			{"opted-out": span(0, 9), "tz/Europe/Rome": span(100, 900)},
			{"opted-out": span(0, 9), "tz/Europe/Rome": span(100, 901)}}},
		"users who moved": {published: []sets{zones(span(0, 99), span(100, 199)), zones(span(0, 9), span(10, 199)),
			zones(span(0, 9), span(10, 199))}, inUse: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := objects.NewDirectory(t.TempDir())
			var all []*segments.Manifest
			running := newGuarding(t, store, "opted-out")
			running.guarded.Zones = true
			var r *segments.Refresher
			for i, of := range test.published {
				all = append(all, goLiveWith(t, store, i, of, test.accepted[i]...))
				if r == nil {
					r = running.start(t)
				} else if err := r.Refresh(t.Context()); err != nil {
					require.ErrorAs(t, err, new(*segments.RefusedError))
				}
			}
			require.Equal(t, all[test.inUse].Generation, r.Current().Generation(), "a service that ran all the time")
			fresh := newGuarding(t, store, "opted-out")
			fresh.guarded.Zones, fresh.cfg.CacheDir = true, ""
			start := fresh.start(t)
			require.Equal(t, all[test.inUse].Generation, start.Current().Generation())
			require.Equal(t, r.Status().Refusal == nil, start.Status().Refusal == nil)
			if start.Status().Refusal == nil {
				require.NotEmpty(t, start.Status().ComparedWith)
			}
		})
	}
}
