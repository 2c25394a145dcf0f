package bitmap

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// sample returns ids that produce containers of every kind.
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
			for i := range uint32(containerIDs) {
				ids = append(ids, base|i)
			}
		}
	}
	return append(ids, 0, 1<<32-1)
}

func TestEncodesLikeRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		ids := sample(seed)
		want := roaring.BitmapOf(ids...)
		want.RunOptimize()
		raw, err := want.ToBytes()
		require.NoError(t, err)
		require.True(t, bytes.Equal(raw, SetOf(ids...).Bitmap().Bytes()), "seed %d: bytes differ from roaring's", seed)
		require.True(t, bytes.Equal(raw, Of(ids...).Bytes()), "seed %d: bytes of sorted ids differ from roaring's",
			seed)

		read, err := Read(raw)
		require.NoError(t, err)
		require.Equal(t, want.GetCardinality(), read.Cardinality())
		lowest, highest, ok := read.Bounds()
		require.True(t, ok)
		require.Equal(t, want.Minimum(), lowest)
		require.Equal(t, want.Maximum(), highest)
		require.Equal(t, want.ToArray(), read.IDs())
		var again Set
		again.AddBitmap(read)
		require.True(t, bytes.Equal(raw, again.Bitmap().Bytes()))
	}
}

// TestGoldenBytes checks the exact bytes of bitmaps with every kind of container, because a change of
// these bytes would upload every bitmap again.
func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	var mixed Set
	for i := range uint32(70_000) { // a bitmap and an array
		mixed.Add(i * 3)
	}
	for i := range uint32(65_536) { // one run
		mixed.Add(1<<20 | i)
	}
	for i := range uint32(5) {
		mixed.Add(1<<32 - 1 - 2*i)
	}
	require.Equal(t, "0f483b868cd831d0846064a2fdd9b83c5c4946d4873ffb5b8c9a37224705b162", Of().SHA256())
	require.Equal(t, Of().SHA256(), new(Set).Bitmap().SHA256())
	require.Equal(t, Of().SHA256(), Range(9, 3).SHA256())
	require.Equal(t, SetOf(65_535, 65_536, 65_537).Bitmap().SHA256(), Range(65_535, 65_538).SHA256())
	require.Equal(t, "1f38054af7665a658c69ccd739aa592b647367caf9abdf0f68b588b5ea0fee74", mixed.Bitmap().SHA256())
}

func TestEveryDamagedBitmapIsRefused(t *testing.T) {
	t.Parallel()
	whole := Of(append(sample(3), sample(4)...)...).Bytes()
	for n := range len(whole) {
		if n > 2000 && n%97 != 0 {
			continue
		}
		_, err := Read(whole[:n])
		require.Error(t, err, "cut off after %d of %d bytes", n, len(whole))
	}
	_, err := Read(append(bytes.Clone(whole), 0))
	require.ErrorContains(t, err, "1 extra bytes after the end")
}

// TestSpareRunFlagsAreRefused checks that unused run-flag bits must be 0. A bitmap with run containers
// has one flag per container, padded to whole bytes.
func TestSpareRunFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for containers := 1; containers <= 17; containers++ {
		var s Set
		for key := range uint32(containers) {
			for low := range uint32(100) {
				s.Add(key<<16 | low)
			}
		}
		whole := s.Bitmap().Bytes()
		_, err := Read(whole)
		require.NoError(t, err)
		for bit := containers; bit < (containers+7)/8*8; bit++ {
			raw := bytes.Clone(whole)
			raw[4+bit/8] |= 1 << (bit % 8)
			_, err := Read(raw)
			require.ErrorContains(t, err, "marks further containers as run containers",
				"%d containers, bit %d", containers, bit)
		}
	}
}

// TestRunsBeyondTheirContainerAreRefused checks the last run of a container: its last id is at most 65,535.
func TestRunsBeyondTheirContainerAreRefused(t *testing.T) {
	t.Parallel()
	for end, valid := range map[uint16]bool{containerIDs - 1: true, 0: false, 1: false} {
		start := end - 99 // may be above end, because the id 65,535 is followed by the next container
		raw := binary.LittleEndian.AppendUint32(nil, cookieRun)
		raw = append(raw, 1)                              // the first container has runs
		for _, n := range []uint16{0, 99, 1, start, 99} { // key, ids - 1, number of runs; start and length of the run
			raw = binary.LittleEndian.AppendUint16(raw, n)
		}
		_, err := Read(raw)
		if valid {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "beyond the end of its bitmap container")
	}
}

// FuzzReadBitmap checks that the roaring library accepts every accepted bitmap as the same set, and
// that encoding the set again gives its canonical form.
func FuzzReadBitmap(f *testing.F) {
	var runs Set
	for i := range uint32(3000) {
		runs.Add(i + i/100*7)
	}
	f.Add(runs.Bitmap().Bytes())
	f.Add(Of(1, 70_000, 1<<20, 1<<30, 1<<31, 1<<32-1).Bytes())
	f.Add(Range(5, 4105).Bytes())
	f.Add(append(Of(1).Bytes(), 0))
	f.Add(Of().Bytes())
	f.Add(Of(1, 2, 3).Bytes())
	f.Add([]byte{0x3b, 0x30, 0, 0, 1, 0, 0, 2, 0, 1, 0, 5, 0, 2, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Read(raw)
		if err != nil {
			return
		}
		r := roaring.New()
		n, err := r.FromBuffer(raw)
		require.NoError(t, err)
		require.EqualValues(t, len(raw), n)
		require.NoError(t, r.Validate())
		require.Equal(t, r.GetCardinality(), b.Cardinality())
		if lowest, highest, ok := b.Bounds(); ok {
			require.Equal(t, r.Minimum(), lowest)
			require.Equal(t, r.Maximum(), highest)
		}
		var s Set
		s.AddBitmap(b)
		again := s.Bitmap()
		r.RunOptimize()
		want, err := r.ToBytes()
		require.NoError(t, err)
		require.Equal(t, r.GetCardinality(), again.Cardinality())
		reread, err := Read(again.Bytes())
		require.NoError(t, err)
		require.Equal(t, again.containers, reread.containers)
		if len(want) == len(again.Bytes()) {
			require.Equal(t, want, again.Bytes())
		} else {
			require.Less(t, len(again.Bytes()), len(want), "the canonical form is never larger than the library's")
		}
	})
}
