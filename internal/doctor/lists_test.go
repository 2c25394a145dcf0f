package doctor

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// The doctor fails where the published generation would be refused, and warns of loose lists.
func TestAListThatLosesUsersIsTold(t *testing.T) {
	t.Parallel()
	dir := place(t)
	at := objects.NewDirectory(filepath.Join(dir, "segments"))
	list := func(b *bitmap.Bitmap) *Report {
		base, err := publish.ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		_, err = (&publish.Publisher{Location: at}).Publish(t.Context(),
			&publish.Candidate{Names: []string{"active"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1)},
				Sets: []publish.Set{{Name: "opted-out", Bitmap: b}}}, base, "forced")
		require.NoError(t, err)
		return run(t, subject(t, dir, embedded("suppress: {opted-out: all}\n")))
	}
	report := list(bitmap.Range(0, 100))
	require.Empty(t, only(report, "segments.generation", Skipped))
	require.True(t, slices.ContainsFunc(only(report, "segments.generation", OK), func(f Finding) bool {
		return strings.HasPrefix(f.Seen, "compared with generation 2")
	}), "the one that was there before")
	require.Contains(t, only(report, "segments.generation", Warning)[0].Seen,
		"users may leave the set in each build")

	require.Contains(t, only(list(bitmap.Range(0, 50)), "segments.generation", Failed)[0].Seen,
		"50 of 100 users (50 %) left set opted-out")
	require.Empty(t, only(list(bitmap.Range(0, 100)), "segments.generation", Failed),
		"more than the one before it at the source")
	s := subject(t, dir, embedded("suppress: {opted-out: all}\n"))
	r := segments.NewRefresher(segments.RefresherConfig{Source: at, CacheDir: s.Config.Segments.Refresher.CacheDir})
	require.NoError(t, r.Load(t.Context()))
	require.Empty(t, only(list(bitmap.Range(0, 101)), "segments.generation", Failed))
	report = list(bitmap.Of())
	require.Contains(t, only(report, "segments.generation", Failed)[0].Seen,
		"set opted-out is empty: all 100 users left")
	require.Contains(t, only(report, "segments.generation", Warning)[0].Seen, "the set is empty in generation")
}
