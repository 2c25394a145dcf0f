package dictionary

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSortAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, sortLeast - 1, sortLeast, 300_000} {
		for _, mask := range []uint64{^uint64(0), 1<<40 - 1} { // the second: all images are in one bucket
			images := make([]uint64, n)
			for i := range images {
				images[i] = r.Uint64() & mask
			}
			want := slices.Sorted(slices.Values(images))
			chunks := slices.Collect(slices.Chunk(images, 1000))
			require.True(t, slices.Equal(want, Sort(chunks)))
			for _, chunk := range chunks {
				require.Nil(t, chunk, "its memory is free")
			}
		}
	}
}

func TestRestsComeBack(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	rests := make([]uint64, 1000)
	for i := range rests {
		rests[i] = r.Uint64()
	}
	var file bytes.Buffer
	w, err := NewRestWriter(&file, uint32(len(rests)))
	require.NoError(t, err)
	for _, rest := range rests {
		require.NoError(t, w.Add(rest))
	}
	require.NoError(t, w.Close())
	raw := file.Bytes()
	opened, err := OpenRests(raw)
	require.NoError(t, err)
	require.EqualValues(t, len(rests), opened.Len())
	for i, rest := range rests {
		require.Equal(t, rest, opened.Rest(uint32(i)))
	}
	for percent := range 100 {
		_, err := OpenRests(raw[:len(raw)*percent/100])
		require.Error(t, err)
	}
	_, err = OpenRests(append(slices.Clone(raw), 0))
	require.ErrorContains(t, err, "1000 rests need 8016")
	for at := range headerBytes {
		require.Error(t, second(OpenRests(flipped(raw, at))), at)
	}
}

func second[T any](_ T, err error) error { return err }

func flipped(raw []byte, at int) []byte {
	raw = slices.Clone(raw)
	raw[at] ^= 1
	return raw
}

func someTexts(n int) (texts [][]byte) {
	for i := range n {
		texts = append(texts, bytes.Repeat([]byte{byte('a' + i%26)}, 1+i*7%MaxText))
	}
	return texts
}

func textFile(t testing.TB, texts [][]byte) []byte {
	var file bytes.Buffer
	w, err := NewTextWriter(&file, uint32(len(texts)))
	require.NoError(t, err)
	for _, text := range texts {
		require.NoError(t, w.Add(text))
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

func TestTextsComeBack(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 15, 16, 17, 3000} {
		texts := someTexts(n)
		opened, err := OpenTexts(textFile(t, texts))
		require.NoError(t, err)
		require.EqualValues(t, n, opened.Len())
		for i, text := range texts {
			require.Equal(t, text, opened.Text(uint32(i)))
		}
	}
}

// TestDamagedTexts cuts and flips a file. It is refused, or every text can be read without leaving the file.
func TestDamagedTexts(t *testing.T) {
	t.Parallel()
	raw := textFile(t, someTexts(60))
	for length := range len(raw) {
		require.Error(t, second(OpenTexts(raw[:length])), length)
	}
	require.Error(t, second(OpenTexts(append(slices.Clone(raw), 0))))
	refused := 0
	for at := range raw {
		opened, err := OpenTexts(flipped(raw, at))
		if err != nil {
			refused++
			continue
		}
		for number := range opened.Len() {
			opened.Text(number)
		}
	}
	require.Greater(t, refused, headerBytes+60, "header, lengths and index")
}

func TestTextsThatAreRefused(t *testing.T) {
	t.Parallel()
	w, err := NewTextWriter(&bytes.Buffer{}, 1)
	require.NoError(t, err)
	require.ErrorContains(t, w.Add(nil), "1 to 256 bytes, got 0")
	require.ErrorContains(t, w.Add(make([]byte, MaxText+1)), "got 257")
	require.ErrorContains(t, w.Close(), "the caller added 0 ids, but announced 1")
	require.NoError(t, w.Add(make([]byte, MaxText)))
	require.ErrorContains(t, w.Add([]byte("b")), "the caller announced 1 ids, but added more")
}

func FuzzOpenTexts(f *testing.F) {
	f.Add(textFile(f, someTexts(20)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		opened, err := OpenTexts(raw)
		if err != nil {
			return
		}
		for number := range opened.Len() {
			opened.Text(number)
		}
	})
}

func BenchmarkSort(b *testing.B) {
	for _, n := range []int{15_000_000} {
		images := make([]uint64, n)
		r := rand.New(rand.NewPCG(5, 6))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				for i := range images {
					images[i] = r.Uint64()
				}
				b.StartTimer()
				Sort([][]uint64{images})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/image")
		})
	}
}
