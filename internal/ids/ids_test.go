package ids_test

import (
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
)

// testKey is the key of the examples in RFC 4493.
func testKey(t require.TestingT) ids.Key {
	key, err := ids.ParseKey("2b7e151628aed2a6abf7158809cf4f3c")
	require.NoError(t, err)
	return key
}

//go:embed testdata/images.tsv
var golden string

// TestImagesNeverChange compares images with those of an independent program. Stores keep images for ever.
func TestImagesNeverChange(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(golden), "\n")[1:]
	require.Len(t, lines, 46)
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		require.Len(t, fields, 5)
		kind, err := ids.ParseKind(fields[0])
		require.NoError(t, err)
		key, err := ids.ParseKey(fields[1])
		require.NoError(t, err)
		image, rest, err := ids.New(kind, key).ParseRest([]byte(fields[2]))
		require.NoError(t, err)
		require.Equal(t, fields[3]+"\t"+fields[4], fmt.Sprintf("%016x\t%016x", image, rest), line)
	}
}

func TestChecksNeverChange(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	require.Empty(t, ids.New(ids.Dense, key).Check())
	require.Equal(t, "00247b15", ids.New(ids.Uint64, key).Check())
	require.Equal(t, "51b11a30", ids.New(ids.UUID, key).Check())
	require.Equal(t, "cf1149fe", ids.New(ids.Text, key).Check())
	key[15]++
	require.NotEqual(t, "51b11a30", ids.New(ids.UUID, key).Check())
}

func TestDenseImagesAreIDs(t *testing.T) {
	t.Parallel()
	var zero ids.Scheme
	for _, s := range []*ids.Scheme{&zero, ids.New(ids.Dense, testKey(t))} {
		require.Equal(t, ids.Dense, s.Kind())
		for _, id := range []uint64{0, 7, 4294967295} {
			text := strconv.FormatUint(id, 10)
			image, err := s.Parse([]byte(text))
			require.NoError(t, err)
			require.Equal(t, id, image)
			back, err := s.Back(nil, image, 0)
			require.NoError(t, err)
			require.Equal(t, text, string(back))
		}
	}
}

func TestUUIDsOfOneUserHaveOneImage(t *testing.T) {
	t.Parallel()
	const canonical = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"
	s := ids.New(ids.UUID, testKey(t))
	want, err := s.Parse([]byte(canonical))
	require.NoError(t, err)
	for _, text := range []string{
		canonical, "018F3C4E-7A1B-7C3D-9E5F-0123456789AB", "018f3c4E-7a1b-7C3d-9e5f-0123456789aB",
		"018f3c4e7a1b7c3d9e5f0123456789ab", "018F3C4E7A1B7C3D9E5F0123456789AB",
		"{018f3c4e-7a1b-7c3d-9e5f-0123456789ab}", "{018F3C4E7A1B7C3D9E5F0123456789AB}",
		"urn:uuid:018f3c4e-7a1b-7c3d-9e5f-0123456789ab", "URN:UUID:018F3C4E-7A1B-7C3D-9E5F-0123456789AB",
		"urn:uuid:018f3c4e7a1b7c3d9e5f0123456789ab",
	} {
		image, err := s.Parse([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, image, text)
		spelled, err := s.Canonical([]byte("id="), []byte(text))
		require.NoError(t, err)
		require.Equal(t, "id="+canonical, string(spelled))
		packed, err := s.AppendPacked(nil, []byte(text))
		require.NoError(t, err)
		require.Len(t, packed, s.Width())
		require.Equal(t, want, s.Packed(packed))
		require.Equal(t, canonical, string(s.Unpack(nil, packed)))
	}
}

func TestTextsAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	s := ids.New(ids.Text, testKey(t))
	seen := map[uint64]string{}
	for _, text := range []string{"7", "007", "a", "A", " a", "a ", "é", "e\u0301", "\u200b", "😀",
		strings.Repeat("a", 256), strings.Repeat("é", 128)} {
		image, err := s.Parse([]byte(text))
		require.NoError(t, err)
		require.NotContains(t, seen, image, text)
		seen[image] = text
		spelled, err := s.Canonical(nil, []byte(text))
		require.NoError(t, err)
		require.Equal(t, text, string(spelled))
	}
}

func TestOtherTextsAreRejected(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 129)
	for _, c := range []struct {
		kind       ids.Kind
		text, want string
	}{
		{ids.Dense, "", `is not a dense id: "" is empty, and a dense id is a whole number from 0 to 4294967295`},
		{ids.Dense, "4294967296", `is not a dense id: "4294967296" is above 4294967295`},
		{ids.Dense, "007", `is not a dense id: "007" begins with 0, and a dense id has no leading zeros`},
		{ids.Uint64, "", `is not a uint64 id: "" is empty, and a uint64 id is a whole number from 0 to ` +
			"18446744073709551615"},
		{ids.Uint64, "00", `is not a uint64 id: "00" begins with 0, and a uint64 id has no leading zeros`},
		{ids.Uint64, "-1", `is not a uint64 id: "-1" has the character "-", and a uint64 id has only the digits 0 to 9`},
		{ids.Uint64, "+1", `is not a uint64 id: "+1" has the character "+", and a uint64 id has only the digits 0 to 9`},
		{ids.Uint64, "1 ", `is not a uint64 id: "1 " has the character " ", and a uint64 id has only the digits 0 to 9`},
		{ids.Uint64, "1e3", `is not a uint64 id: "1e3" has the character "e", and a uint64 id has only the digits 0 to 9`},
		{ids.Uint64, "٣", `is not a uint64 id: "٣" has the character "٣", and a uint64 id has only the digits 0 to 9`},
		{ids.Uint64, "18446744073709551616", `is not a uint64 id: "18446744073709551616" is above 18446744073709551615`},
		{ids.Uint64, "18446744073709551620", `is not a uint64 id: "18446744073709551620" is above 18446744073709551615`},
		{ids.Uint64, "99999999999999999999", `is not a uint64 id: "99999999999999999999" is above 18446744073709551615`},
		{ids.Uint64, "184467440737095516150", `is not a uint64 id: "184467440737095516150" is above 18446744073709551615`},
		{ids.UUID, "", `is not a UUID: "" has 0 hexadecimal digits, and a UUID has 32`},
		{ids.UUID, "42", `is not a UUID: "42" has 2 hexadecimal digits, and a UUID has 32`},
		{ids.UUID, "018f3c4e-7a1b-7c3d-9e5f-0123456789a",
			`is not a UUID: "018f3c4e-7a1b-7c3d-9e5f-0123456789a" has 31 hexadecimal digits, and a UUID has 32`},
		{ids.UUID, "018f3c4e-7a1b-7c3d-9e5f-0123456789ag", `is not a UUID: "018f3c4e-7a1b-7c3d-9e5f-0123456789ag" has the ` +
			`character "g", and a UUID has hexadecimal digits and dashes`},
		{ids.UUID, "018f3c4e7a1b-7c3d-9e5f-0123456789ab-", `is not a UUID: "018f3c4e7a1b-7c3d-9e5f-0123456789ab-" has ` +
			"dashes in wrong places, and a UUID has no dashes or four (8-4-4-4-12)"},
		{ids.UUID, "{018f3c4e-7a1b-7c3d-9e5f-0123456789ab", `is not a UUID: "{018f3c4e-7a1b-7c3d-9e5f-0123456789ab" has ` +
			"one brace without the other"},
		{ids.UUID, "018f3c4e7a1b7c3d9e5f0123456789ab}", `is not a UUID: "018f3c4e7a1b7c3d9e5f0123456789ab}" has ` +
			"one brace without the other"},
		{ids.UUID, "{", `is not a UUID: "{" has one brace without the other`},
		{ids.UUID, "urn:uuid:{018f3c4e7a1b7c3d9e5f0123456789ab}", "is not a UUID: " +
			`"urn:uuid:{018f3c4e7a1b7c3d9e5f0123456789ab}" has the character "{", and a UUID has hexadecimal digits and dashes`},
		{ids.UUID, "{{018f3c4e7a1b7c3d9e5f0123456789ab}}", `is not a UUID: "{{018f3c4e7a1b7c3d9e5f0123456789ab}}" has ` +
			`the character "{", and a UUID has hexadecimal digits and dashes`},
		{ids.Text, "", `is not a text id: "" is empty, and a text id has 1 to 256 bytes`},
		{ids.Text, long, `is not a text id: "` + long[:80] + `…" has 258 bytes, and a text id has at most 256`},
		{ids.Text, "a" + long, `is not a text id: "a` + long[:78] + `…" has 259 bytes, and a text id has at most 256`},
		{ids.Text, "a\n", `is not a text id: "a\n" has the control character U+000A at byte 2`},
		{ids.Text, "\x7f", `is not a text id: "\x7f" has the control character U+007F at byte 1`},
		{ids.Text, "é\xff", `is not a text id: "é\xff" is not valid UTF-8 at byte 3`},
		{ids.Text, "\xed\xa0\x80", `is not a text id: "\xed\xa0\x80" is not valid UTF-8 at byte 1`},
		{ids.Text, "a\ufffd", `is not a text id: "a` + "\ufffd" + `" has U+FFFD (sign of invalid UTF-8) at byte 2`},
	} {
		s := ids.New(c.kind, testKey(t))
		_, err := s.Parse([]byte(c.text))
		require.EqualError(t, err, c.want)
		dst, err := s.Canonical([]byte("kept"), []byte(c.text))
		require.EqualError(t, err, c.want)
		require.Equal(t, "kept", string(dst))
		if s.Width() > 0 {
			dst, err = s.AppendPacked([]byte("kept"), []byte(c.text))
			require.EqualError(t, err, c.want)
			require.Equal(t, "kept", string(dst))
		}
	}
}

// TestNumbersAgreeWithStrconv compares digits of every length, with one digit replaced by every other byte.
func TestNumbersAgreeWithStrconv(t *testing.T) {
	t.Parallel()
	dense, wide := ids.New(ids.Dense, testKey(t)), ids.New(ids.Uint64, testKey(t))
	random := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		text := strconv.AppendUint(nil, random.Uint64()>>random.IntN(64), 10)
		if random.IntN(2) == 0 {
			text[random.IntN(len(text))] = byte(random.Uint32())
		}
		if random.IntN(8) == 0 {
			text = append(text, '0'+byte(random.IntN(10)))
		}
		want, err := strconv.ParseUint(string(text), 10, 64)
		whole := err == nil && (text[0] != '0' || len(text) == 1)
		image, err := dense.Parse(text)
		if whole && want <= math.MaxUint32 {
			require.NoError(t, err)
			require.Equal(t, want, image)
		} else {
			require.Error(t, err, "%q", text)
		}
		packed, err := wide.AppendPacked(nil, text)
		if whole {
			require.NoError(t, err)
			require.Equal(t, want, binary.BigEndian.Uint64(packed))
		} else {
			require.Error(t, err, "%q", text)
		}
	}
}

// TestNoTwoUint64IDsShareAnImage proves that no pair of 10 million ids in order shares an image: each image leads back
// to its own id.
func TestNoTwoUint64IDsShareAnImage(t *testing.T) {
	t.Parallel()
	s := ids.New(ids.Uint64, testKey(t))
	p := s.NewParser()
	var id, back [8]byte
	for n := range uint64(10_000_000) {
		binary.BigEndian.PutUint64(id[:], n)
		found, rest := p.Packed(id[:])
		got, err := s.BackPacked(back[:0], found, rest)
		if err != nil || [8]byte(got) != id {
			require.Failf(t, "another id", "%d: image %x leads to %x, %v", n, found, got, err)
		}
	}
}

func TestImagesLeadBackToIDs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []ids.Kind{ids.Uint64, ids.UUID} {
		s := ids.New(kind, testKey(t))
		p := s.NewParser()
		for range 100_000 {
			packed := binary.BigEndian.AppendUint64(nil, random.Uint64())
			if kind == ids.UUID {
				packed = binary.BigEndian.AppendUint64(packed, random.Uint64())
			}
			text := s.Unpack(nil, packed)
			image, rest := p.Packed(packed)
			parsed, parsedRest, err := p.ParseRest(text)
			require.NoError(t, err)
			require.Equal(t, [2]uint64{image, rest}, [2]uint64{parsed, parsedRest})
			back, err := s.Back(nil, image, rest)
			require.NoError(t, err)
			require.Equal(t, string(text), string(back))
			back, err = s.BackPacked(nil, image, rest)
			require.NoError(t, err)
			require.Equal(t, packed, back)
		}
	}
	_, err := ids.New(ids.Text, testKey(t)).Back(nil, 1, 0)
	require.ErrorIs(t, err, ids.ErrNoWayBack)
}

// TestEveryByteOfAUUID checks each byte at each place of a UUID, with and without dashes, against the library.
func TestEveryByteOfAUUID(t *testing.T) {
	t.Parallel()
	s := ids.New(ids.UUID, testKey(t))
	const dashed = "018F3c4e-7a1B-7c3d-9e5f-0123456789ab"
	for _, whole := range []string{dashed, strings.ReplaceAll(dashed, "-", "")} {
		for at := range len(whole) {
			for b := range 256 {
				text := []byte(whole)
				text[at] = byte(b)
				var want []byte
				placed := len(whole) == 32 || text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-'
				raw, err := hex.DecodeString(strings.ReplaceAll(string(text), "-", ""))
				if placed && err == nil && len(raw) == 16 {
					want = raw
				}
				packed, err := s.AppendPacked(nil, text)
				require.Equal(t, want == nil, err != nil, "%q", text)
				require.Equal(t, want, packed, "%q", text)
			}
		}
	}
}

func TestParsersAgreeWithSchemes(t *testing.T) {
	t.Parallel()
	for _, s := range schemes(t) {
		texts, packed := sample(t, s, 100)
		p := s.NewParser()
		for i, text := range texts {
			want, err := s.Parse(text)
			require.NoError(t, err)
			image, err := p.Parse(text)
			require.NoError(t, err)
			require.Equal(t, want, image)
			if width := s.Width(); width > 0 {
				image, _ = p.Packed(packed[width*i : width*i+width])
				require.Equal(t, want, image)
				appended, image, err := p.AppendPacked([]byte("x"), text)
				require.NoError(t, err)
				require.Equal(t, want, image)
				require.Equal(t, "x"+string(packed[width*i:width*i+width]), string(appended))
				appended, _, err = p.AppendPacked([]byte("x"), []byte("\x00"))
				require.Error(t, err)
				require.Equal(t, "x", string(appended))
			}
		}
		if s.Width() > 0 {
			continue
		}
		_, err := s.AppendPacked(nil, texts[0])
		require.EqualError(t, err, "only ids of the kinds 'uuid' and 'uint64' have a packed form (16 or 8 bytes), "+
			"not ids of the kind "+s.Kind().String())
		require.Panics(t, func() { s.Packed(make([]byte, 16)) })
		require.Panics(t, func() { s.Unpack(nil, make([]byte, 16)) })
	}
}

func TestParsersAllocateNothing(t *testing.T) {
	for _, s := range schemes(t) {
		texts, packed := sample(t, s, 100)
		p, text := s.NewParser(), make([]byte, 0, 256)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			image, err := p.Parse(texts[0])
			if s.Width() > 0 && err == nil {
				p.Packed(packed)
				_, err = p.BackPacked(text, image, 0)
			}
			if err == nil {
				_, err = s.Canonical(text, texts[0])
			}
			if err != nil {
				panic(err)
			}
		}), s.Kind())
	}
}

// TestImagesAreSpreadEvenly counts the images of ids in order by their low 6 bits, which are a partition, and by their
// top 16 bits, which are a bucket.
func TestImagesAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	schemes := schemes(t)
	for _, s := range append(schemes[1:], ids.Narrow(schemes[2], 20)) {
		partitions, buckets := make([]int, 1<<6), make([]int, 1<<16)
		p := s.NewParser()
		var text []byte
		for i := range n {
			text = inOrder(s.Kind(), text[:0], i)
			image, err := p.Parse(text)
			require.NoError(t, err)
			partitions[image&63]++
			buckets[image>>48]++
		}
		require.Less(t, chiSquare(partitions, n), 63+6*11.3, "partitions of %s", s.Kind())
		if slices.Contains(schemes, s) { // 2^20 images cannot fill 2^16 buckets evenly
			require.Less(t, chiSquare(buckets, n), 65535+6*362.0, "buckets of %s", s.Kind())
		}
	}
}

// chiSquare returns Pearson's statistic against even cells. The statistic of random cells is their number less one on
// average, and has a standard deviation of √(2·number).
func chiSquare(cells []int, n int) (sum float64) {
	want := float64(n) / float64(len(cells))
	for _, found := range cells {
		sum += (float64(found) - want) * (float64(found) - want) / want
	}
	return sum
}

// TestNarrowImagesAreShared holds that 100,000 ids share 20-bit images, and that those spread over all 64 bits.
func TestNarrowImagesAreShared(t *testing.T) {
	t.Parallel()
	for _, whole := range schemes(t)[1:] {
		s := ids.Narrow(whole, 20)
		require.Equal(t, whole.Check(), s.Check())
		images := make([]uint64, 100_000)
		union := uint64(0)
		for i := range images {
			image, err := s.Parse(inOrder(s.Kind(), nil, i))
			require.NoError(t, err)
			images[i], union = image, union|image
		}
		slices.Sort(images)
		pairs := len(images) - len(slices.Compact(images))
		require.InDelta(t, 4620, pairs, 400, "n - 2^20·(1-e^(-n/2^20)) of %s", s.Kind())
		require.Equal(t, ^uint64(0), union)
		_, err := s.Back(nil, images[0], 0)
		require.ErrorIs(t, err, ids.ErrNoWayBack)
		_, err = s.BackPacked(nil, images[0], 0)
		require.ErrorIs(t, err, ids.ErrNoWayBack)
	}
	require.Panics(t, func() { ids.Narrow(ids.New(ids.Dense, ids.Key{}), 20) })
	require.Panics(t, func() { ids.Narrow(ids.New(ids.UUID, ids.Key{}), 64) })
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range ids.Kinds() {
		parsed, err := ids.ParseKind(kind.String())
		require.NoError(t, err)
		require.Equal(t, kind, parsed)
	}
	_, err := ids.ParseKind("UUID")
	require.EqualError(t, err, `must be dense, uint64, uuid or text, got "UUID"`)
	require.Equal(t, "Kind(9)", ids.Kind(9).String())
	require.Panics(t, func() { ids.New(9, ids.Key{}) })
}

// FuzzParse holds that every text is an id with one canonical text, or no id at all, and that all ways to an image
// agree.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "0", "7", "007", "18446744073709551615", "4294967296", "a@example.com", "\xff",
		"018f3c4e-7a1b-7c3d-9e5f-0123456789ab", "{018F3C4E7A1B7C3D9E5F0123456789AB}", "{}", "urn:uuid:",
		"urn:uuid:018f3c4e-7a1b-7c3d-9e5f-0123456789ab", "018f3c4e-7a1b-7c3d-9e5f-0123456789a-"} {
		f.Add([]byte(text))
	}
	schemes := schemes(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range schemes {
			image, rest, err := s.ParseRest(text)
			canonical, canonicalErr := s.Canonical(nil, text)
			require.Equal(t, err, canonicalErr)
			if err != nil {
				require.Contains(t, err.Error(), "is not a ")
				continue
			}
			again, restAgain, err := s.ParseRest(canonical)
			require.NoError(t, err)
			require.Equal(t, [2]uint64{image, rest}, [2]uint64{again, restAgain})
			same, err := s.Canonical(nil, canonical)
			require.NoError(t, err)
			require.Equal(t, canonical, same)
			if s.Kind() != ids.Text {
				back, err := s.Back(nil, image, rest)
				require.NoError(t, err)
				require.Equal(t, canonical, back)
			}
			if s.Width() > 0 {
				packed, err := s.AppendPacked(nil, text)
				require.NoError(t, err)
				require.Equal(t, image, s.Packed(packed))
				require.Equal(t, canonical, s.Unpack(nil, packed))
			}
		}
	})
}

// schemes returns a scheme of each kind, Dense first.
func schemes(t require.TestingT) (all []*ids.Scheme) {
	for _, kind := range ids.Kinds() {
		all = append(all, ids.New(kind, testKey(t)))
	}
	return all
}

// inOrder appends the i-th id of a kind: numbers, UUIDs of version 7 with one a millisecond, counted texts.
func inOrder(kind ids.Kind, text []byte, i int) []byte {
	switch kind {
	case ids.UUID:
		return fmt.Appendf(text, "%08x-%04x-7000-8000-000000000000", 0x018f3c4e+i>>16, i&0xffff)
	case ids.Text:
		return fmt.Appendf(text, "user-%d", i)
	}
	return strconv.AppendInt(text, int64(i), 10)
}

// sample returns ids of a scheme as texts and packed. Those of the kind uint64 have 19 digits.
func sample(t require.TestingT, s *ids.Scheme, n int) (texts [][]byte, packed []byte) {
	first := 0
	if s.Kind() == ids.Uint64 {
		first = 1846352998123456789
	}
	for i := range n {
		text := inOrder(s.Kind(), nil, first+i*7919)
		texts = append(texts, text)
		if s.Width() > 0 {
			var err error
			packed, err = s.AppendPacked(packed, text)
			require.NoError(t, err)
		}
	}
	return texts, packed
}

func BenchmarkParse(b *testing.B) {
	for _, s := range schemes(b) {
		b.Run(s.Kind().String(), func(b *testing.B) {
			texts, _ := sample(b, s, 10_000)
			p := s.NewParser()
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range texts {
					if _, err := p.Parse(text); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(texts)), "ns/id")
		})
	}
}

func BenchmarkPacked(b *testing.B) {
	for _, s := range schemes(b)[1:3] {
		b.Run(s.Kind().String(), func(b *testing.B) {
			_, packed := sample(b, s, 10_000)
			p := s.NewParser()
			b.ReportAllocs()
			for b.Loop() {
				for left := packed; len(left) > 0; left = left[s.Width():] {
					p.Packed(left)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*10_000), "ns/id")
		})
	}
}

func BenchmarkBack(b *testing.B) {
	for _, s := range schemes(b)[1:3] {
		b.Run(s.Kind().String(), func(b *testing.B) {
			text, image := make([]byte, 0, 64), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				image += 0x9e3779b97f4a7c15
				if _, err := s.Back(text, image, image); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
