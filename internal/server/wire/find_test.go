package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// finderOver returns a finder over one generation.
func finderOver(s *segments.Snapshot) *Finder {
	return NewFinder(func(string) (*segments.Snapshot, error) { return s, nil })
}

// listOf returns n canonical ids of a kind. Text ids have the greatest length.
func listOf(kind ids.Kind, n int) []string {
	list := make([]string, n)
	for i := range list {
		if list[i] = id(kind, uint64(i)); kind == ids.Text {
			list[i] = fmt.Sprintf("%d%s", i, strings.Repeat(`"`, 256))[:256]
		}
	}
	return list
}

// TestAudiencesReserveTheirIDs checks that the ids of an audience are reserved before they are stored, and that the
// answer about them is not larger than its estimate.
func TestAudiencesReserveTheirIDs(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Uint64, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			list := listOf(kind, 1000)
			f := finderOver(segmentstest.Snapshot(t, testScheme(kind), list))
			a, reserved := &Audience{Query: &api.AudienceQuery{Audience: "vip"}, Form: InBitmaps}, int64(0)
			search := &Search{Holder: "h", Most: len(list), Names: true, Reserve: func(bytes int64) error {
				require.Nil(t, a.Given)
				reserved += bytes
				return nil
			}}
			require.NoError(t, f.Find(t.Context(), a, search))
			require.Equal(t, a.Given.size(), reserved)
			require.LessOrEqual(t, int64(cap(a.Given.packed)+4*cap(a.Given.ends)), reserved)
			var names []string
			for i, user := range a.Users {
				names = append(names, a.Given.canonical(i, user))
			}
			require.ElementsMatch(t, list, names)
			require.Equal(t, kind == ids.Text, a.Form == InLists)

			d := &capping.Decisions{Users: a.Users, Verdicts: make([]capping.Verdict, len(a.Users)),
				Codes: make([]uint8, len(a.Users)), Policy: dealtPolicy}
			for i := range d.Verdicts {
				d.Verdicts[i].Outcome = capping.Allowed
			}
			answer := EncodeFilter(nil, &FilterRequest{Audience: *a}, d, Summarize(d))
			require.LessOrEqual(t, len(answer), 1024+a.IDBytes()*len(a.Users))

			search.Reserve = func(int64) error { return Overloaded("full") }
			a = &Audience{Query: a.Query, Form: InBitmaps}
			require.ErrorContains(t, f.Find(t.Context(), a, search), "full")
			require.Nil(t, a.Given)
		})
	}
}

// TestAReservationHoldsNoTurn checks that an audience whose memory is not free yet keeps no other from its evaluation.
func TestAReservationHoldsNoTurn(t *testing.T) {
	t.Parallel()
	list := listOf(ids.Text, 10)
	f := finderOver(segmentstest.Snapshot(t, testScheme(ids.Text), list))
	find := func(reserve func(int64) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return f.Find(ctx, &Audience{Query: &api.AudienceQuery{Audience: "vip"}},
			&Search{Holder: "h", Most: len(list), Names: true, Reserve: reserve})
	}
	nested := func(int64) error { return nil }
	for range 2 * atOnce {
		inner := nested
		nested = func(int64) error { return find(inner) }
	}
	require.NoError(t, find(nested))
	require.ErrorContains(t, find(func(int64) error { return errors.New("none") }), "none")
}

// BenchmarkFind measures an audience of a third of 300,000 UUIDs or of all: the evaluation, and the ids of the answer.
func BenchmarkFind(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]string, 300_000)
	for i := range list {
		list[i] = id(ids.UUID, random.Uint64())
	}
	f := finderOver(segmentstest.Snapshot(b, testScheme(ids.UUID), list))
	for _, users := range []int{len(list) / 3, len(list)} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := &Audience{Query: &api.AudienceQuery{Audience: "vip", MaxUsers: users}}
				require.NoError(b, f.Find(b.Context(), a, &Search{Holder: "h", Names: true, Reserve: boundless}))
				require.Len(b, a.Users, users)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*users), "ns/user")
		})
	}
	b.Run("ids", func(b *testing.B) {
		s, err := f.Pin("")
		require.NoError(b, err)
		numbers := make([]uint32, len(list))
		for i := range numbers {
			numbers[i] = uint32(i)
		}
		slices.Sort(numbers)
		for b.Loop() {
			_, err := givenOf(s, numbers)
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(list)), "ns/user")
	})
}
