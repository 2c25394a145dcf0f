package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

func TestLookupAnswersAreTheWireTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &membership{Generation: "g<1>\u2028", Names: []string{"new", "é"}}
		m.Users = rapid.SliceOfNDistinct(rapid.Uint32(), 0, 60, rapid.ID).Draw(t, "users")
		m.Sets = rapid.SampledFrom([][]string{nil, {"a"}, {"tz/Asia/Singapore", "b", `"`}}).Draw(t, "sets")
		r := &LookupRequest{Sets: m.Sets}
		if r.Form = numberForm.Draw(t, "form"); r.Form == InBitmaps {
			slices.Sort(m.Users)
			if rapid.Bool().Draw(t, "audience") {
				r.Taken = &api.AudienceTaken{Generation: "g", Users: len(m.Users), Next: "x",
					NextPart: &api.Part{Of: 2, Index: 1}}
			}
		}
		for range m.Users {
			m.Codes = append(m.Codes, rapid.Uint8Range(0, 2).Draw(t, "segment"))
			m.In = append(m.In, rapid.Uint64Range(0, 1<<len(m.Sets)-1).Draw(t, "in"))
		}
		if r.Form == InBitmaps {
			requireWireType(t, EncodeLookup(nil, r, m), new(api.LookupBitmaps))
		} else {
			requireWireType(t, EncodeLookup(nil, r, m), new(api.LookupIDs))
		}
		page := &PageOfMembers{generation: m.Generation, name: "a/b", numbers: m.Users, more: len(m.Users) > 0}
		requireWireType(t, EncodeMembers(nil, page), new(api.Members))
	})
}

// BenchmarkLookup measures a lookup of 100,000 ids in 4 segments and 10 sets, with and without encoding.
func BenchmarkLookup(b *testing.B) {
	const users = 100_000
	body := []byte(`{"user_ids":[`)
	ids := make([]uint32, users)
	for i := range ids {
		ids[i] = uint32(i)*37 + uint32(i)%11
		body = fmt.Appendf(body, "%d,", ids[i])
	}
	body = append(body[:len(body)-1], `],"sets":["s0","s1","s2","s3","s4","s5","s6","s7","s8","s9"]}`...)
	snapshot, names := lookedUp(b)
	bounds := Bounds{IDs: users, Bitmap: users, Reserve: func(int64) error { return nil }}
	perUser := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/users, "ns/user")
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			_, err := MembershipOf(snapshot, ids, names)
			require.NoError(b, err)
		}
		perUser(b)
	})
	b.Run("decoded and answered", func(b *testing.B) {
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			r, err := DecodeLookup(body, bounds)
			require.NoError(b, err)
			m, err := MembershipOf(snapshot, capping.AppendDense(nil, r.Users), r.Sets)
			require.NoError(b, err)
			out = EncodeLookup(out[:0], r, m)
		}
		perUser(b)
	})
}

// lookedUp returns a generation of 4 segments and 10 sets, and the names of the sets.
func lookedUp(b *testing.B) (*segments.Snapshot, []string) {
	pick := func(by, rest uint32) *bitmap.Bitmap {
		var ids []uint32
		for id := rest; id < 4_000_000; id += by {
			ids = append(ids, id)
		}
		return bitmap.OfSorted(ids)
	}
	g := &segments.Generation{}
	var list []segments.Segment
	var sets []segments.Set
	var names []string
	for i := range uint32(4) {
		g.Bitmaps = append(g.Bitmaps, pick(5, i))
		list = append(list, segments.Describe(fmt.Sprintf("segment-%d", i), g.Bitmaps[i]))
	}
	for i := range uint32(10) {
		g.Sets = append(g.Sets, pick(3+i, i%3))
		names = append(names, fmt.Sprintf("s%d", i))
		sets = append(sets, segments.Set{Segment: segments.Describe(names[i], g.Sets[i])})
	}
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "", list, sets...)
	require.NoError(b, err)
	g.Manifest = m
	return g.Snapshot(), names
}
