package segments

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// sample returns ids that make containers of every kind.
func sample(seed uint64) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	var ids []uint32
	for range 1 + r.IntN(8) {
		base := r.Uint32() &^ 0xffff
		switch r.IntN(4) {
		case 0: // array
			for range r.IntN(3000) {
				ids = append(ids, base|r.Uint32()&0xffff)
			}
		case 1: // bitmap
			for range 5000 + r.IntN(60000) {
				ids = append(ids, base|r.Uint32()&0xffff)
			}
		case 2: // runs
			for at := uint32(0); at < 60000; at += r.Uint32N(3000) + 2 {
				for range r.IntN(500) {
					ids = append(ids, base|at)
					at++
				}
			}
		case 3: // full
			for i := range uint32(chunkIDs) {
				ids = append(ids, base|i)
			}
		}
	}
	return append(ids, 0, 1<<32-1)
}

func setOf(ids ...uint32) *Set {
	s := new(Set)
	for _, id := range ids {
		s.Add(id)
	}
	return s
}

func bitmapOf(ids ...uint32) *Bitmap { return setOf(ids...).Bitmap() }

func TestEncodesLikeRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		ids := sample(seed)
		want := roaring.BitmapOf(ids...)
		want.RunOptimize()
		raw, err := want.ToBytes()
		require.NoError(t, err)
		got := bitmapOf(ids...)
		require.True(t, bytes.Equal(raw, got.Bytes()), "seed %d: bytes differ from roaring's", seed)

		read, err := ReadBitmap(raw)
		require.NoError(t, err)
		require.Equal(t, want.GetCardinality(), read.Cardinality())
		lowest, highest, ok := read.Bounds()
		require.True(t, ok)
		require.Equal(t, want.Minimum(), lowest)
		require.Equal(t, want.Maximum(), highest)
		var again Set
		again.AddBitmap(read)
		require.True(t, bytes.Equal(raw, again.Bitmap().Bytes()))
	}
}

func TestSnapshotFindsEverySegment(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		var bitmaps []*Bitmap
		m := &Manifest{}
		n := 1 + int(seed)%9
		for i := range n {
			bitmaps = append(bitmaps, bitmapOf(sample(seed*7+uint64(i)%3)...))
			m.Segments = append(m.Segments, Segment{Name: string(rune('a' + i))})
		}
		s := newSnapshot(m, bitmaps)
		users := append(sample(seed*7), sample(seed+1000)...)
		for i := range users {
			users[i] += uint32(i % 3)
		}
		codes := make([]uint8, len(users))
		s.Lookup(users, codes)
		for i, id := range users {
			want := uint8(0)
			for k, b := range bitmaps {
				if b.Roaring().Contains(id) {
					want = uint8(k + 1)
					break
				}
			}
			if want != codes[i] {
				require.Equal(t, want, codes[i], "seed %d id %d", seed, id)
			}
			if i > 3000 {
				break
			}
		}
	}
}
