package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// amendedOver reads the lines of live like a build, and those of amended like an amend. The result has the warnings
// of the amend over the build.
func amendedOver(t *testing.T, scheme *ids.Scheme, live, amended string) *Result {
	plan := func(lines string) *Plan {
		return &Plan{SetsAlone: true, Sets: []Definition{{Name: "out", Publish: true,
			Inputs: inputs(testFile(t, t.TempDir(), "x.txt", lines))}}}
	}
	cfg := Config{Scheme: scheme, Names: true}
	was, err := Run(t.Context(), plan(live), cfg, quiet)
	require.NoError(t, err)
	is, err := Run(t.Context(), plan(amended), cfg, quiet)
	require.NoError(t, err)
	return is.WarningsOver(&segments.Generation{Scheme: scheme, Dictionary: was.Candidate.Dictionary,
		Back: was.Candidate.Back})
}

func TestTwinsOfAnAmend(t *testing.T) {
	t.Parallel()
	scheme := ids.New(ids.Text, segmentstest.Key(1))
	for _, c := range []struct {
		live, amended string
		want          Twins
	}{
		{"a\nb\n", "c\n", Twins{}},
		{"A\na\n", "b\n", Twins{}}, // the build has warned
		{"a\n", "A\n", Twins{IDs: 1, A: "A", B: "a"}},
		{"A\n", "a\n", Twins{IDs: 1, A: "A", B: "a"}},
		{"A x\n", "a X\n", Twins{IDs: 2, A: "A x", B: "a X"}},
		{"A\n", "A\n", Twins{}},
		{"A\nB\n", "a\n A\nB\n", Twins{IDs: 2, A: " A", B: "a"}},
		{"b\n", "A\na\n", Twins{IDs: 1, A: "A", B: "a"}},
	} {
		require.Equal(t, c.want, amendedOver(t, scheme, c.live, c.amended).Twins, "%q over %q", c.amended, c.live)
	}
}

// TestSharedImagesOfAnAmend cuts the images, so that ids of the files share images with each other and with live ids.
func TestSharedImagesOfAnAmend(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Text} {
		scheme := ids.Narrow(ids.New(kind, segmentstest.Key(1)), 12)
		lines := func(first, n uint32) string {
			var text strings.Builder
			for i := first; i < first+n; i++ {
				fmt.Fprintln(&text, idOf(kind, i))
			}
			return text.String()
		}
		require.Zero(t, amendedOver(t, scheme, lines(0, 20), lines(0, 20)).SharedCount)
		r := amendedOver(t, scheme, lines(0, 4000), lines(4000, 100))
		images := map[uint64]int{}
		want := 0
		for i := range uint32(4100) {
			image := segmentstest.Images(t, scheme, idOf(kind, i))[0]
			if i < 4000 {
				images[image] = 1
			} else if images[image]++; images[image] > 1 {
				want++
			}
		}
		require.Positive(t, want)
		require.EqualValues(t, want, r.SharedCount)
		require.Len(t, r.Shared, min(want, sharedSamples))
		if kind == ids.Text { // cut images do not lead back to UUIDs
			require.NotEqual(t, r.Shared[0].A, r.Shared[0].B)
		}
	}
}
