package segments_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// timedSet returns a set with these times.
func timedSet(name string, asOf, amended time.Time) segments.Set {
	s := describe(name, bitmap.Of(1, 2))
	s.AsOf, s.AmendedAsOf = asOf, amended
	return s
}

func manifestOf(sets ...segments.Set) (*segments.Manifest, error) {
	return segments.NewManifest(segmentstest.Epoch, "test", "",
		[]segments.Segment{segments.Describe("vip", bitmap.Of(1))}, sets...)
}

func TestAManifestHasFormatFourExactlyWhenASetHasATime(t *testing.T) {
	t.Parallel()
	at := segmentstest.Epoch.Add(-1500 * time.Millisecond)
	for _, c := range []struct {
		set  segments.Set
		want int
		json string
	}{
		{timedSet("opted-out", at, time.Time{}), 4, `"as_of": "2026-11-20T10:14:58.5Z"`},
		{timedSet("opted-out", time.Time{}, at), 4, `"amended_as_of": "2026-11-20T10:14:58.5Z"`},
		{timedSet("opted-out", time.Time{}, time.Time{}), 2, ""},
	} {
		m, err := manifestOf(c.set, describe("country/sg", bitmap.Of(3)))
		require.NoError(t, err)
		require.Equal(t, c.want, m.FormatVersion)
		require.Contains(t, string(m.Encode()), c.json)
		back, err := segments.ParseManifest(m.Generation, m.Encode())
		require.NoError(t, err)
		require.Equal(t, m, back)
		with, err := m.WithAccepted([]segments.Accepted{accepted(segmentstest.Epoch)})
		require.NoError(t, err)
		require.Equal(t, max(c.want, segments.AcceptedFormatVersion), with.FormatVersion)
		with.FormatVersion = 9 - with.FormatVersion - c.want // another version that programs know
		with.Generation = segments.NameOf(with)
		_, err = segments.ParseManifest(with.Generation, with.Encode())
		require.ErrorContains(t, err, "format_version")
	}
}

// TestOlderProgramsRefuseAManifestWithAsOf checks that programs that do not know as_of reject such a
// manifest, because they compare its bytes with their own encoding.
func TestOlderProgramsRefuseAManifestWithAsOf(t *testing.T) {
	t.Parallel()
	m, err := manifestOf(timedSet("opted-out", segmentstest.Epoch, time.Time{}))
	require.NoError(t, err)
	require.EqualError(t, segments.ParseAsOf(segments.AcceptedFormatVersion, m.Encode()),
		"format_version 4 is too new: this program reads up to 3, and a newer version of capper wrote the document")
	require.Equal(t, 1, segments.PointerTo(m).FormatVersion)
}

func TestTimesOfSetsThatAreRefused(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		"must be a time in UTC with whole milliseconds":   segmentstest.Epoch.Add(-time.Microsecond),
		"must not be later than the time in 'created_at'": segmentstest.Epoch.Add(time.Millisecond),
		"sets[1]: as_of must not be later":                segmentstest.Epoch.Add(500 * time.Millisecond),
	} {
		_, err := manifestOf(describe("country/sg", bitmap.Of(3)), timedSet("opted-out", at, time.Time{}))
		require.ErrorContains(t, err, want)
	}
	_, err := manifestOf(timedSet("opted-out", time.Time{}, segmentstest.Epoch.Add(time.Second)))
	require.ErrorContains(t, err, "amended_as_of must not be later")
	m, err := manifestOf(timedSet("opted-out", segmentstest.Epoch, time.Time{}))
	require.NoError(t, err)
	other := bytes.Replace(m.Encode(), []byte("10:15:00Z\"\n"), []byte("11:15:00+01:00\"\n"), 1)
	require.NotEqual(t, m.Encode(), other)
	_, _, err = segments.ParseAnyName(other)
	require.ErrorContains(t, err, "as_of must be a time in UTC with whole milliseconds, got 2026-11-20T11:15:00+01:00")
}

// TestASnapshotKnowsTheTimesOfItsSets checks the times of a generation from before there were any, and of
// a later one with the same bitmaps.
func TestASnapshotKnowsTheTimesOfItsSets(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	at := segmentstest.Epoch.Add(-time.Hour)
	for _, b := range []*bitmap.Bitmap{bitmap.Of(1), bitmap.Of(1, 2)} {
		_, err := store.Put(t.Context(), segments.BitmapKey(b.SHA256()), b.Bytes())
		require.NoError(t, err)
	}
	r := segments.NewRefresher(segments.RefresherConfig{Source: store})
	tag := ""
	for _, want := range []time.Time{{}, at, {}} {
		m, err := manifestOf(timedSet("opted-out", want, time.Time{}))
		require.NoError(t, err)
		_, err = store.Put(t.Context(), segments.ManifestKey(m.Generation), m.Encode())
		require.NoError(t, err)
		tag, err = store.Replace(t.Context(), segments.CurrentKey, segments.PointerTo(m).Encode(), tag)
		require.NoError(t, err)
		if r.Current() == nil {
			require.NoError(t, r.Load(t.Context()))
		}
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, m.Generation, r.Current().Generation())
		require.True(t, want.Equal(r.Current().AsOf("opted-out")))
		require.Zero(t, r.Current().AsOf("another"))
	}
}
