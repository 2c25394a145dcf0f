package ingest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// TestSharedImagesAreNamed builds with images of 12 bits, so that many ids share an image.
func TestSharedImagesAreNamed(t *testing.T) {
	t.Parallel()
	for kind, id := range map[ids.Kind]func(i int) string{
		ids.UUID: func(i int) string { return fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", i) },
		ids.Text: func(i int) string { return "user" + strconv.Itoa(i) },
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			var lines strings.Builder
			for i := range 20_000 {
				lines.WriteString(id(i%10_000) + "\n")
			}
			scheme := ids.New(kind, segmentstest.Key(1))
			p := &Plan{Segments: []Definition{{Name: "all",
				Inputs: inputs(testFile(t, t.TempDir(), "x.txt", lines.String()))}}}
			result, err := Run(t.Context(), p, Config{Scheme: ids.Narrow(scheme, 12), Names: true}, quiet)
			require.NoError(t, err)
			n := result.Candidate.Dictionary.Len()
			require.Less(t, n, uint32(1<<12+1))
			require.EqualValues(t, 10_000-n, result.SharedCount)
			require.Len(t, result.Shared, sharedSamples)
			require.EqualValues(t, n, result.Candidate.Bitmaps[0].Cardinality())
			require.NotEqual(t, result.Shared[0].A, result.Shared[0].B)

			result, err = Run(t.Context(), p, Config{Scheme: scheme, Names: true}, quiet)
			require.NoError(t, err)
			require.Empty(t, result.Shared)
			g := &segments.Generation{Scheme: scheme, Dictionary: result.Candidate.Dictionary,
				Back: result.Candidate.Back}
			for i := range 10_000 {
				number, ok := g.Dictionary.Number(segmentstest.Images(t, scheme, id(i))[0])
				require.True(t, ok)
				text, err := g.ID(nil, number)
				require.NoError(t, err)
				require.Equal(t, id(i), string(text))
			}
		})
	}
}

func TestTwinsAreFound(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]Twins{
		"a@x.com\nb@x.com\nc\n":              {},
		"A@x.com\nb@x.com\nB\n":              {},
		"A@x.com\nA@x.com\na@x.com\nb\n":     {IDs: 1, A: "A@x.com", B: "a@x.com"},
		"x\n" + " É \n" + "é\n":              {IDs: 1, A: " É ", B: "é"},
		"A@x.com\nb@x.com\nA@X.com\nother\n": {IDs: 2, A: "A@X.com", B: "A@x.com"},
	} {
		result, err := runOne(t, ids.Text, "x.txt", content)
		require.NoError(t, err)
		require.Equal(t, want, result.Twins, content)
	}
	const id = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab\n"
	result, err := runOne(t, ids.UUID, "x.txt", id+strings.ToUpper(id))
	require.NoError(t, err)
	require.Zero(t, result.Twins)
}
