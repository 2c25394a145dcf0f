package publish

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// asOf returns a set with a time.
func asOf(name string, at time.Time, ids ...uint32) Set {
	return Set{Name: name, Bitmap: bitmap.Of(ids...), AsOf: at}
}

// TestWhenALaterAsOfIsPublished checks that only a stated time, or one that is much later, is a reason
// to publish users who are live already.
func TestWhenALaterAsOfIsPublished(t *testing.T) {
	t.Parallel()
	store, clock := objects.NewDirectory(t.TempDir()), segmentstest.Stepping()
	at := segmentstest.Epoch.Add(-24 * time.Hour)
	first := publishAll(t, store, clock, withSets(asOf("opted-out", time.Time{}, 1)))
	require.Equal(t, segments.SetsFormatVersion, first.FormatVersion)
	second := publishAll(t, store, clock, withSets(asOf("opted-out", at, 1)))
	require.Equal(t, segments.AsOfFormatVersion, second.FormatVersion)
	require.Equal(t, at, second.Sets[0].AsOf)

	for _, same := range []time.Time{at, {}, at.Add(-time.Hour), at.Add(asOfStep - time.Millisecond)} {
		require.Equal(t, second, publishAll(t, store, clock, withSets(asOf("opted-out", same, 1))), same)
	}
	third := publishAll(t, store, clock, withSets(asOf("opted-out", at.Add(asOfStep), 1)))
	require.Equal(t, at.Add(asOfStep), third.Sets[0].AsOf)
	require.Equal(t, second.Sets[0].Key, third.Sets[0].Key)
	given := asOf("opted-out", third.Sets[0].AsOf.Add(time.Millisecond), 1)
	given.AsOfGiven = true
	fourth := publishAll(t, store, clock, withSets(given))
	require.Equal(t, given.AsOf, fourth.Sets[0].AsOf)
	require.Equal(t, fourth, publishAll(t, store, clock, withSets(given)))

	// Users who are live already keep the later time when other content changes.
	fifth := publishAll(t, store, clock, withSets(asOf("opted-out", at, 1), asOf("country/sg", time.Time{}, 7)))
	require.Equal(t, given.AsOf, fifth.Sets[0].AsOf)
	require.Zero(t, fifth.Sets[1].AsOf)
	// Other users have the time of their file, also if it is earlier.
	sixth := publishAll(t, store, clock, withSets(asOf("opted-out", at, 1, 2), asOf("country/sg", at, 7)))
	require.Equal(t, at, sixth.Sets[0].AsOf)
	require.Equal(t, at, sixth.Sets[1].AsOf)
	// No set speaks for a time after its generation.
	seventh := publishAll(t, store, clock, withSets(asOf("opted-out", segmentstest.Epoch.Add(time.Hour), 1, 2, 3)))
	require.Equal(t, seventh.CreatedAt, seventh.Sets[0].AsOf)
}

// TestAForcedPublishCorrectsAnAsOf checks that a stated time which is earlier than the live one counts with a
// reason, and only then.
func TestAForcedPublishCorrectsAnAsOf(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	late, early := segmentstest.Epoch.Add(-time.Hour), segmentstest.Epoch.Add(-2*time.Hour)
	first := publishOver(t, at, withSets(asOf("opted-out", late, 1), asOf("country/sg", late, 7)))
	unstated, stated := asOf("opted-out", early, 1), asOf("opted-out", early, 1)
	stated.AsOfGiven = true
	require.Equal(t, first.Generation, publishOver(t, at, withSets(stated, asOf("country/sg", early, 7))).Generation)
	require.Equal(t, first.Generation,
		publishForced(t, at, withSets(unstated, asOf("country/sg", early, 7)), "sure").Generation)
	corrected := publishForced(t, at, withSets(stated, asOf("country/sg", early, 7)), "written late")
	require.NotEqual(t, first.Generation, corrected.Generation)
	require.Equal(t, early, corrected.Sets[0].AsOf, "opted-out")
	require.Equal(t, late, corrected.Sets[1].AsOf, "country/sg")
	require.Equal(t, first.Sets[1].Key, corrected.Sets[1].Key)
}

// TestTheAsOfOfJoinedSets checks that a join of two versions of a set has the earlier time.
func TestTheAsOfOfJoinedSets(t *testing.T) {
	t.Parallel()
	early, late := segmentstest.Epoch.Add(-2*time.Hour), segmentstest.Epoch.Add(-time.Hour)
	list := func(at time.Time, ids ...uint32) Set {
		s := asOf("opted-out", at, ids...)
		s.Growth = Growth{Said: true, OnlyGrows: true}
		return s
	}
	at := objects.NewDirectory(t.TempDir())
	good := publishOver(t, at, withSets(list(early, 5, 6)))
	publishForced(t, at, withSets(list(late, 5, 7)), "sure")
	require.Equal(t, early, rollBackWith(t, at, good.Generation).Sets[0].AsOf, "joined")
	require.Equal(t, []uint32{5, 6, 7}, live(t, at).Sets[0].IDs())

	// Of a refused build only new users go live: with the time of the build if the users are exactly those
	// of its file.
	for _, c := range []struct {
		is   Set
		want time.Time
	}{{list(late, 5, 6, 7, 8), late}, {list(late, 5, 8), early}} {
		only, _ := withSets(c.is).SetsThatGrew(live(t, at), func(string) bool { return false })
		require.Equal(t, c.want, only.Sets[0].AsOf)
		require.Equal(t, []uint32{5, 6, 7, 8}, only.Sets[0].Bitmap.IDs())
	}
}

func TestParseAsOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-23T02:00Z":             now.Add(-10 * time.Hour),
		"2026-11-23T02:00:00Z":          now.Add(-10 * time.Hour),
		"2026-11-23T02:00:00.0019Z":     now.Add(-10*time.Hour + time.Millisecond),
		"2026-11-23T10:00:00+08:00":     now.Add(-10 * time.Hour),
		"2026-11-23T12:00:00.000+00:00": now,
		"1970-01-01T00:00:00.000+00:00": time.Unix(0, 0).UTC(),
	} {
		got, err := ParseAsOf(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":                     "must be a time with a zone such as 2026-11-23T02:00Z",
		"2026-11-23":           "must be a time with a zone",
		"2026-11-23T02:00":     "must be a time with a zone",
		"2026-11-23T12:00:01Z": "must not be in the future: the time is now 2026-11-23T12:00:00Z",
		"1969-12-31T23:59:59Z": "must not be before 1970",
	} {
		_, err := ParseAsOf(text, now)
		require.ErrorContains(t, err, want, text)
	}
}
