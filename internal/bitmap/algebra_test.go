package bitmap_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
)

// blockIDs returns the lower halves of the ids in a block of one kind.
func blockIDs(r *rand.Rand, kind int) (ids []uint32) {
	for id := range uint32(bitmap.BlockIDs) {
		in := false
		switch kind {
		case 1: // every id
			in = true
		case 2: // an array
			in = r.IntN(100) == 0
		case 3: // a bitmap
			in = r.IntN(3) == 0
		case 4: // runs
			in = id>>8&3 == 1
		case 5: // all but a few
			in = id%10_000 != 7
		case 6: // the ends
			in = id == 0 || id == bitmap.BlockIDs-1
		}
		if in {
			ids = append(ids, id)
		}
	}
	return ids
}

// load completes w according to the extent that a load returned, and checks that w holds the ids.
func load(t *testing.T, extent bitmap.Extent, w *bitmap.Words, ids []uint32) {
	t.Helper()
	switch extent {
	case bitmap.Everything:
		require.Len(t, ids, bitmap.BlockIDs)
		w.Fill()
	case bitmap.Nothing:
		require.Empty(t, ids)
		w.Clear()
	default:
		require.NotEmpty(t, ids)
		require.Less(t, len(ids), bitmap.BlockIDs)
	}
	requireWords(t, ids, w)
}

func requireWords(t *testing.T, ids []uint32, w *bitmap.Words) {
	t.Helper()
	require.True(t, slices.Equal(ids, w.AppendIDs(nil, 0, bitmap.BlockIDs)))
	require.Equal(t, len(ids), w.Count())
}

const kinds = 7

func TestWordsOfBlocks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for kind := range kinds {
		for other := range kinds {
			a, b := blockIDs(r, kind), blockIDs(r, other)
			first, second := bitmap.Of(a...), bitmap.Of(b...)
			var both, without []uint32
			for _, id := range a {
				if second.Contains(id) {
					both = append(both, id)
				} else {
					without = append(without, id)
				}
			}
			var v, w bitmap.Words
			w.Fill() // what was there does not matter
			load(t, first.Load(0, &w), &w, a)
			load(t, second.Load(0, &v), &v, b)
			require.Equal(t, len(both), second.CountIn(0, &w))
			x := w
			require.Equal(t, len(both) == 0, x.And(&v) == bitmap.Nothing)
			requireWords(t, both, &x)
			x = w
			require.Equal(t, len(without) == 0, x.Without(&v) == bitmap.Nothing)
			requireWords(t, without, &x)
			x = w
			second.Add(0, &x)
			y := w
			extent := y.Or(&v)
			require.Equal(t, x, y)
			if len(a) > 0 {
				require.Equal(t, y.Extent(), extent)
			}
			if len(a) > 0 {
				rank := r.IntN(len(a))
				require.EqualValues(t, a[rank], w.Rank(rank))
			}
			require.Equal(t, first.Bytes(), bitmap.Join([]bitmap.Encoded{{}, w.Encode(0), {}}).Bytes())
		}
	}
}

// TestWordsOfCodes checks that the codes of whole blocks agree with the codes of single ids, for
// blocks of all kinds.
func TestWordsOfCodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 2, 4, 7, 8, 20, 255} {
		sets := make([]*bitmap.Set, n)
		for i := range sets {
			sets[i] = new(bitmap.Set)
		}
		const blocks = 6
		for key := range uint32(blocks) {
			for _, id := range blockIDs(r, []int{3, 0, 2, 5, 4, 1}[key]) {
				code := r.IntN(n)
				if key == 5 {
					code = n - 1
				}
				sets[code].Add(key<<16 | id)
			}
		}
		bitmaps := make([]*bitmap.Bitmap, n)
		for i := range sets {
			bitmaps[i] = sets[i].Bitmap()
		}
		m := bitmap.NewCodeMap(runtime.GOMAXPROCS(0), bitmaps)
		require.Equal(t, blocks, m.Blocks())
		for key := range blocks + 2 {
			requireCodes(t, r, m, n, key)
		}
	}
}

func requireCodes(t *testing.T, r *rand.Rand, m *bitmap.CodeMap, n, key int) {
	t.Helper()
	byCode := make([][]uint32, n+1)
	var coded, asked []uint32
	counts, want := make([]uint64, 256), make([]uint64, 256)
	var w bitmap.Words
	for id := range uint32(bitmap.BlockIDs) {
		code := m.Code(uint32(key)<<16 | id)
		byCode[code] = append(byCode[code], id)
		if code > 0 {
			coded = append(coded, id)
		}
		if r.IntN(2) == 0 {
			asked = append(asked, id)
			want[code]++
		}
	}
	load(t, m.LoadAny(key, &w), &w, coded)
	for code := 1; code <= n; code++ {
		load(t, m.Load(uint8(code), key, &w), &w, byCode[code])
	}
	bitmap.Of(asked...).Load(0, &w)
	m.CountCodes(key, &w, counts)
	require.Equal(t, want, counts)
}
