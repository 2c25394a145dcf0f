package segments_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// idOfKind returns the n-th id of a kind.
func idOfKind(kind ids.Kind, n int) string {
	switch kind {
	case ids.UUID:
		return fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", n)
	case ids.Uint64:
		return strconv.Itoa(n * 1_000_003)
	}
	return fmt.Sprintf("user %d%*s", n, n%200, "x")
}

// numberedGeneration returns a generation of the segment all, with a way back if names is set.
func numberedGeneration(t *testing.T, scheme *ids.Scheme, names bool, list []string) *segments.Generation {
	d, bitmaps := segmentstest.Numbered(t, scheme, list)
	g := &segments.Generation{Bitmaps: bitmaps, Scheme: scheme, Dictionary: d}
	if names {
		g.Back = segmentstest.Back(t, scheme, d, list)
	}
	return g
}

// TestInsertedIDsAreWhereABuildPutsThem compares an insertion with the dictionary, the way back and the bitmaps of all
// ids together.
func TestInsertedIDsAreWhereABuildPutsThem(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.Uint64, ids.UUID, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(kind)))
			scheme := ids.New(kind, segmentstest.Key(1))
			for round := range 60 {
				var mine, theirs, both []string
				population := random.IntN(600)
				for n := range population {
					id := idOfKind(kind, n)
					switch random.IntN(4) {
					case 0:
						theirs = append(theirs, id)
					case 1:
						mine, theirs = append(mine, id), append(theirs, id)
					default:
						mine = append(mine, id)
					}
					both = append(both, id)
				}
				names := round%2 == 0
				g, from := numberedGeneration(t, scheme, names, mine), numberedGeneration(t, scheme, true, theirs)
				want := numberedGeneration(t, scheme, names, both)
				var further []uint32
				for number, in := range from.Dictionary.NumbersIn(g.Dictionary) {
					if in == dictionary.Unknown {
						further = append(further, uint32(number))
					}
				}
				in, err := g.Insert(from, further)
				require.NoError(t, err)
				require.Equal(t, want.Dictionary.Bytes(), in.Dictionary.Bytes())
				require.Equal(t, len(both)-len(mine), len(further))
				if want.Back == nil {
					require.Nil(t, in.Back)
				} else {
					require.Equal(t, want.Back.Bytes(), in.Back.Bytes())
				}
				members := bitmap.Of(segmentNumbers(t, want, mine)...)
				require.Equal(t, members.Bytes(), in.Bitmap(g.Bitmaps[0]).Bytes())
				moved := in.Generation(g)
				require.Equal(t, members.Bytes(), moved.Bitmaps[0].Bytes())
				require.Same(t, g, moved.Original())
				theirNumbers := from.Dictionary.NumbersIn(in.Dictionary)
				require.Equal(t, bitmap.Of(segmentNumbers(t, want, theirs)...).Bytes(),
					segments.OfNumbers(from.Bitmaps[0], theirNumbers).Bytes())

				// Both together, as RenumberedBy numbers them.
				by, err := from.RenumberedBy(g.Dictionary)
				require.NoError(t, err)
				var union bitmap.Set
				union.AddBitmap(g.Bitmaps[0])
				union.AddBitmap(by.Bitmaps[0])
				var beyond []uint32
				for i := range further {
					beyond = append(beyond, g.Dictionary.Len()+uint32(i))
				}
				if len(further) > 0 {
					require.Equal(t, further, by.NumbersBefore(beyond))
				}
				all, err := in.BitmapBeyond(union.Bitmap(), beyond)
				require.NoError(t, err)
				require.Equal(t, want.Bitmaps[0].Bytes(), all.Bytes())
			}
		})
	}
}

// segmentNumbers returns the numbers of ids in a generation.
func segmentNumbers(t *testing.T, g *segments.Generation, list []string) []uint32 {
	numbers := make([]uint32, len(list))
	g.Dictionary.Numbers(segmentstest.Images(t, g.Scheme, list...), numbers)
	require.NotContains(t, numbers, uint32(dictionary.Unknown))
	return numbers
}

func TestAnIDIsInsertedOnce(t *testing.T) {
	t.Parallel()
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	g := numberedGeneration(t, scheme, false, uuids(0, 5))
	_, err := g.Insert(numberedGeneration(t, scheme, false, uuids(3, 5)), []uint32{0, 1, 2, 3, 4})
	require.ErrorContains(t, err, "must ascend")
	in, err := g.Insert(numberedGeneration(t, scheme, false, uuids(5, 5)), nil)
	require.NoError(t, err)
	require.Equal(t, g.Dictionary.Bytes(), in.Dictionary.Bytes())
	_, err = in.BitmapBeyond(bitmap.Of(1, 5), nil)
	require.ErrorContains(t, err, "number 5 belongs to no user")
}

func TestAPartOfAGeneration(t *testing.T) {
	t.Parallel()
	m := segmentstest.Manifest(t, segmentstest.Epoch, "", []string{"vip"}, bitmap.Of(1))
	for i, name := range []string{"a", "b", "c"} {
		m.Sets = append(m.Sets, segments.Set{Segment: segments.Describe(name, bitmap.Of(uint32(i)))})
	}
	g := &segments.Generation{Manifest: m, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1)},
		Sets: []*bitmap.Bitmap{bitmap.Of(0), bitmap.Of(1), bitmap.Of(2)}}
	part := g.Only(func(set string) bool { return set != "b" })
	require.Empty(t, part.Bitmaps)
	require.Empty(t, part.Manifest.Segments)
	require.Equal(t, []*bitmap.Bitmap{g.Sets[0], g.Sets[2]}, part.Sets)
	require.Equal(t, "c", part.Manifest.Sets[1].Name)
	require.True(t, slices.Equal([]uint32{1}, g.Bitmaps[0].IDs()))
}
