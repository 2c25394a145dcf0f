package audience_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audience"
	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/share"
)

func bind(t testing.TB, g *audience.Engine, text string, s *segments.Snapshot) *audience.Audience {
	t.Helper()
	e, err := audience.Parse(text)
	require.NoError(t, err, text)
	a, err := g.Bind(e, s)
	require.NoError(t, err, text)
	return a
}

func TestAudiencesAreThoseOfTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 12))
			m := newModel(r, []int{1, 2, 3, 5, 9, 3}[seed], []int{0, 6, 3, 6, 1, 6}[seed])
			s, g := m.snapshot(t), audience.NewEngine(0)
			for range 12 {
				expression := randomSum(r, m.names(), 2)
				a := bind(t, g, expression.text(r), s)
				requireSame(t, r, m, m.of(expression), a)
			}
		})
	}
}

// requireSame compares every result of an audience with the users that the model expects.
func requireSame(t *testing.T, r *rand.Rand, m *model, want []int, a *audience.Audience) {
	t.Helper()
	sample, err := share.New(share.Sample, 1+99*r.Float64(), "salt")
	require.NoError(t, err)
	q := audience.Query{}
	if r.IntN(2) == 0 {
		q.Sample = &sample
	}
	parts := 1 + r.IntN(5)
	for index := range parts {
		var part []int
		for _, user := range want[len(want)*index/parts : len(want)*(index+1)/parts] {
			if q.Sample == nil || share.Has(&sample, m.everyone[user]) {
				part = append(part, user)
			}
		}
		q.Part = audience.Part{Of: parts, Index: index}
		requireSlice(t, r, m, part, a, q)
	}
	all, err := a.Count(t.Context(), audience.Query{})
	require.NoError(t, err)
	require.EqualValues(t, len(want), all)
}

func requireSlice(t *testing.T, r *rand.Rand, m *model, want []int, a *audience.Audience, q audience.Query) {
	t.Helper()
	users, err := a.Users(t.Context(), q, len(m.everyone))
	require.NoError(t, err)
	ids := m.ids(want)
	require.True(t, slices.Equal(ids, users.Users), "%d users instead of %d", len(users.Users), len(want))
	b, err := a.Bitmap(t.Context(), q)
	require.NoError(t, err)
	require.True(t, slices.Equal(ids, b.IDs()))
	requirePages(t, r, ids, a, q)
	requireBreakdown(t, m, want, a, q)
}

func requirePages(t *testing.T, r *rand.Rand, want []uint32, a *audience.Audience, q audience.Query) {
	t.Helper()
	n := 1 + len(want)/(1+r.IntN(4))
	for first := 0; ; first += n {
		p, err := a.Page(t.Context(), q, n)
		require.NoError(t, err)
		require.True(t, slices.Equal(want[min(first, len(want)):min(first+n, len(want))], p.Users))
		if first+n >= len(want) {
			require.Nil(t, p.Next)
			require.Equal(t, q.Part.Index+1 < q.Part.Of, p.NextPart != nil)
			return
		}
		require.Nil(t, p.NextPart)
		q.Cursor, err = audience.ParseCursor(p.Next.String())
		require.NoError(t, err)
	}
}

func requireBreakdown(t *testing.T, m *model, want []int, a *audience.Audience, q audience.Query) {
	t.Helper()
	inSegments, inSets := map[string]uint64{}, map[string]uint64{}
	for _, user := range want {
		inSegments[m.segment[user]]++
		for _, set := range m.sets {
			if m.in[set][user] {
				inSets[set]++
			}
		}
	}
	b, err := a.Breakdown(t.Context(), q)
	require.NoError(t, err)
	require.EqualValues(t, len(want), b.Users)
	require.Equal(t, inSegments, b.Segments)
	require.Equal(t, inSets, b.Sets)
	n, err := a.Count(t.Context(), q)
	require.NoError(t, err)
	require.EqualValues(t, len(want), n)
}

// TestSamplesAreOfUsers checks that a sample of ids that are not dense has the same users in every generation, whatever
// their numbers are, and that they are those of the share of their images.
func TestSamplesAreOfUsers(t *testing.T) {
	t.Parallel()
	cell, err := share.NewCell(share.Sample, 20, 70, "salt")
	require.NoError(t, err)
	for _, kind := range []ids.Kind{ids.Uint64, ids.UUID, ids.Text} {
		scheme := ids.New(kind, segmentstest.Key(1))
		users := func(first, last int) (list []string) {
			for i := first; i < last; i++ {
				id := fmt.Sprint(i)
				if kind == ids.UUID {
					id = fmt.Sprintf("%032x", i)
				}
				list = append(list, id)
			}
			return list
		}
		sampled := func(list ...[]string) (images []uint64) {
			d, bitmaps := segmentstest.Numbered(t, scheme, list...)
			m := segmentstest.Manifest(t, segmentstest.Epoch, "", []string{"a", "b"}, bitmaps...)
			m, err := m.WithIDs(scheme, d, nil)
			require.NoError(t, err)
			g := &segments.Generation{Manifest: m, Bitmaps: bitmaps, Scheme: scheme, Dictionary: d}
			of := bind(t, audience.NewEngine(0), "a", g.Snapshot())
			q := audience.Query{Sample: &cell}
			page, err := of.Users(t.Context(), q, 10_000)
			require.NoError(t, err)
			n, err := of.Count(t.Context(), q)
			require.NoError(t, err)
			require.EqualValues(t, len(page.Users), n)
			for _, number := range page.Users {
				images = append(images, d.Image(number))
			}
			return images
		}
		var want []uint64
		for _, image := range segmentstest.Images(t, scheme, users(0, 3000)...) {
			if share.Has(&cell, image) {
				want = append(want, image)
			}
		}
		slices.Sort(want)
		require.Greater(t, len(want), 1300)
		require.Less(t, len(want), 1700)
		require.Equal(t, want, sampled(users(0, 3000), users(3000, 3001)))
		require.Equal(t, want, sampled(users(0, 3000), users(3000, 9000)), "other numbers")
	}
}

func TestWorkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newModel(rand.New(rand.NewPCG(1, 1)), 2, 3).snapshot(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var a *audience.Audience
	for name, do := range map[string]func(ctx context.Context) error{
		"count": func(ctx context.Context) error { _, err := a.Count(ctx, audience.Query{}); return err },
		"part": func(ctx context.Context) error {
			_, err := a.Page(ctx, audience.Query{Part: audience.Part{Of: 3}}, 5)
			return err
		},
		"page":      func(ctx context.Context) error { _, err := a.Page(ctx, audience.Query{}, 5); return err },
		"bitmap":    func(ctx context.Context) error { _, err := a.Bitmap(ctx, audience.Query{}); return err },
		"breakdown": func(ctx context.Context) error { _, err := a.Breakdown(ctx, audience.Query{}); return err },
	} {
		a = bind(t, audience.NewEngine(0), "all - opted-out", s) // of its own: counts that are kept need no work
		require.ErrorIs(t, do(gone), context.Canceled, name)
		require.NoError(t, do(t.Context()), name)
	}
}

func TestMoreUsersThanACallTakes(t *testing.T) {
	t.Parallel()
	a := bind(t, audience.NewEngine(0), "all", ten(t))
	p, err := a.Users(t.Context(), audience.Query{}, 10)
	require.NoError(t, err)
	require.Len(t, p.Users, 10)
	_, err = a.Users(t.Context(), audience.Query{}, 9)
	var tooMany *audience.TooManyError
	require.ErrorAs(t, err, &tooMany)
	require.Equal(t, 9, tooMany.Most)
	_, err = a.Count(t.Context(), audience.Query{Part: audience.Part{Of: 10_001}})
	require.EqualError(t, err, "part.of: the number of parts must be from 1 to 10000, got 10001")
	_, err = a.Count(t.Context(), audience.Query{Part: audience.Part{Of: 2, Index: 2}})
	require.EqualError(t, err, "part.index: the index of a part must be from 0 to 1, got 2")
}
