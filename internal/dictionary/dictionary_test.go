package dictionary

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func build(t testing.TB, images []uint64) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, uint32(len(images)))
	require.NoError(t, err)
	require.NoError(t, w.Add(images...))
	require.NoError(t, w.Close())
	return file.Bytes()
}

func images(n int, shift uint, seed uint64) []uint64 {
	r := rand.New(rand.NewPCG(seed, 1))
	list := make([]uint64, n)
	for i := range list {
		list[i] = r.Uint64() >> shift
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func TestDictionaryAgreesWithAMap(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 24, 25, 255, 65536} {
		for _, shift := range []uint{0, 40} {
			list := images(n, shift, uint64(n))
			d, err := Open(build(t, list))
			require.NoError(t, err)
			want := map[uint64]uint32{}
			for i, image := range list {
				want[image] = uint32(i)
				require.Equal(t, image, d.Image(uint32(i)))
			}
			asked := append(slices.Clone(list), images(1000, shift, 99)...)
			asked = append(asked, 0, 1<<64-1)
			numbers := make([]uint32, len(asked))
			d.Numbers(asked, numbers)
			for i, image := range asked {
				number, known := want[image]
				if !known {
					number = Unknown
				}
				got, ok := d.Number(image)
				require.Equal(t, number, got)
				require.Equal(t, known, ok)
				require.Equal(t, number, numbers[i])
				after, _ := slices.BinarySearch(list, image+1)
				if image == 1<<64-1 {
					after = len(list)
				}
				require.EqualValues(t, after, d.After(image))
			}
			read := []uint64{}
			for number, image := range d.All() {
				require.EqualValues(t, len(read), number)
				read = append(read, image)
			}
			require.True(t, slices.Equal(list, read))
			other := slices.Compact(slices.Sorted(slices.Values(append(images(n/2, shift, 7), list[:len(list)/2]...))))
			o, err := Open(build(t, other))
			require.NoError(t, err)
			seen := 0
			for number, in := range Merge(d, o) {
				expected, _ := o.Number(list[number])
				require.Equal(t, expected, in)
				seen++
			}
			require.Equal(t, len(list), seen)
		}
	}
}

func TestOpenRefusesFlipsAndCuts(t *testing.T) {
	t.Parallel()
	list := images(5000, 0, 3)
	raw := build(t, list)
	r := rand.New(rand.NewPCG(5, 5))
	for range 1000 {
		flipped := slices.Clone(raw)
		flipped[r.IntN(len(raw))] ^= 1 << r.IntN(8)
		if d, err := Open(flipped); err == nil { // a flip may leave a valid dictionary of other images
			requireAscending(t, d)
		}
	}
	for percent := range 100 {
		_, err := Open(raw[:len(raw)*percent/100])
		require.Error(t, err)
	}
	_, err := Open(append(slices.Clone(raw), 0))
	require.Error(t, err)
}

// TestARepeatedImageIsRefused checks that Open rejects a dictionary in which two numbers have the same image.
func TestARepeatedImageIsRefused(t *testing.T) {
	t.Parallel()
	raw := build(t, []uint64{3, 5, 8}) // few images are in one row, and take 8 bytes each
	copy(raw[headerBytes+8:headerBytes+16], raw[headerBytes:])
	_, err := Open(raw)
	require.ErrorContains(t, err, "in row 0 must ascend")
}

func requireAscending(t testing.TB, d *Dictionary) {
	t.Helper()
	count, before := uint32(0), uint64(0)
	for number, image := range d.All() {
		if found, ok := d.Number(image); !ok || found != number || number > 0 && image <= before {
			require.Fail(t, "order", "number %d has image %x, and that image has number %d", number, image, found)
		}
		count, before = count+1, image
	}
	require.Equal(t, d.Len(), count)
}

func FuzzOpen(f *testing.F) {
	f.Add(build(f, images(40, 0, 1)))
	f.Add(build(f, nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := Open(raw); err == nil {
			requireAscending(t, d)
		}
	})
}
