package share_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/share"
)

func newShare(t require.TestingT, kind share.Kind, percent float64, salt string) *share.Share {
	s, err := share.New(kind, percent, salt)
	require.NoError(t, err)
	return &s
}

// of returns the users below n that are in the share.
func of(s *share.Share, n uint32) (users []uint32) {
	for user := range n {
		if share.Has(s, user) {
			users = append(users, user)
		}
	}
	return users
}

// TestSharesNeverChange compares shares with users that an independent program computed from the
// specification of the hash. The shares must never change.
func TestSharesNeverChange(t *testing.T) {
	t.Parallel()
	large := []uint32{4294967295, 4000000000, 123456789, 270000000}
	for _, c := range []struct {
		kind    share.Kind
		salt    string
		percent float64
		below   []uint32 // the users below 300
		among   int      // the number of users below 100,000
		half    []uint32 // the users of large in a share of 50 %
	}{
		{share.Holdout, "2027-q1", 5, []uint32{15, 22, 32, 33, 34, 38, 52, 74, 81, 84, 103, 110, 113, 135, 136, 166,
			255, 261, 268, 279}, 4985, []uint32{4294967295, 270000000}},
		{share.Sample, "2027-q1", 5, []uint32{0, 15, 28, 52, 77, 86, 88, 113, 136, 190, 216, 276, 280, 281, 287}, 4956,
			[]uint32{4000000000, 123456789, 270000000}},
		{share.Sample, "a", 10, []uint32{
			9, 16, 21, 31, 39, 57, 62, 67, 76, 156, 160, 165, 172, 173, 176, 199, 202, 207, 212, 228, 229, 230, 233,
			238, 239, 273, 280, 298,
		}, 9934, []uint32{4294967295}},
		{share.Holdout, "a salt of more than thirty-two bytes, in ü", 2.5, []uint32{61, 91, 99, 138, 177, 192, 197,
			279}, 2550, []uint32{4000000000, 123456789}},
	} {
		s := newShare(t, c.kind, c.percent, c.salt)
		require.Equal(t, c.below, of(s, 300))
		require.Len(t, of(s, 100_000), c.among)
		half := newShare(t, c.kind, 50, c.salt)
		var found []uint32
		for _, user := range large {
			if share.Has(half, user) {
				found = append(found, user)
			}
		}
		require.Equal(t, c.half, found)
		require.Equal(t, c.percent, s.Percent())
		require.Equal(t, c.salt, s.Salt())
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, percent := range []float64{0, -1, 100.0001, math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := share.New(share.Holdout, percent, "a")
		require.ErrorContains(t, err, "percent: must be a percentage above 0 and at most 100")
	}
	for _, salt := range []string{"", strings.Repeat("a", share.MaxSalt+1)} {
		_, err := share.New(share.Holdout, 5, salt)
		require.ErrorContains(t, err, "salt: must be a text of 1 to 128 bytes")
	}
	require.Len(t, of(newShare(t, share.Holdout, 100, strings.Repeat("a", share.MaxSalt)), 1000), 1000)
	require.Empty(t, of(newShare(t, share.Holdout, math.SmallestNonzeroFloat64, "a"), 1000))
	require.Empty(t, of(&share.Share{}, 1000), "the zero value")
	require.NotEmpty(t, of(newShare(t, share.Sample, math.Nextafter(100, 0), "a"), 1000))
}

// TestSharesAreNested checks that a smaller share is part of a larger one, and that Mark and Has agree.
func TestSharesAreNested(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.StringN(1, 30, share.MaxSalt).Draw(t, "salt")
		small := rapid.Float64Range(0.0001, 100).Draw(t, "small")
		larger := rapid.Float64Range(small, 100).Draw(t, "larger")
		a, b := newShare(t, share.Sample, small, salt), newShare(t, share.Sample, larger, salt)
		users := rapid.SliceOfN(rapid.Uint32(), 1, 200).Draw(t, "users")
		marks := make([]uint8, len(users))
		marks[0] = 7
		share.Mark(a, users, marks, 9)
		require.EqualValues(t, 7, marks[0], "a mark that was there stays")
		for i, user := range users {
			require.True(t, !share.Has(a, user) || share.Has(b, user))
			if i > 0 {
				require.Equal(t, share.Has(a, user), marks[i] == 9)
			}
		}
	})
}

// TestCellsPartitionEverybody checks that adjacent cells contain every user once, for any boundaries. The
// cell from 0 must equal the share.
func TestCellsPartitionEverybody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.StringN(1, 30, share.MaxSalt).Draw(t, "salt")
		at := rapid.SliceOfNDistinct(rapid.OneOf(
			rapid.Float64Range(math.SmallestNonzeroFloat64, math.Nextafter(100, 0)),
			rapid.SampledFrom([]float64{100.0 / 3, 33.3, 10, 20, 0.1, 1e-9, 50, 99.999999, math.Nextafter(50, 100)}),
		), 0, 20, rapid.ID).Draw(t, "boundaries")
		at = append(at, 0, 100)
		slices.Sort(at)
		users := append(rapid.SliceOfN(rapid.Uint32(), 1, 200).Draw(t, "users"), 0, math.MaxUint32)
		for _, kind := range []share.Kind{share.Sample, share.Holdout} {
			in := make([]int, len(users))
			for i := range at[1:] {
				cell, err := share.NewCell(kind, at[i], at[i+1], salt)
				require.NoError(t, err)
				require.Equal(t, []float64{at[i], at[i+1]}, []float64{cell.From(), cell.To()})
				upper, lower := newShare(t, kind, at[i+1], salt), &share.Share{}
				if at[i] > 0 {
					lower = newShare(t, kind, at[i], salt)
				}
				marks := make([]uint8, len(users))
				share.Mark(&cell, users, marks, 1)
				for k, user := range users {
					require.Equal(t, share.Has(upper, user) && !share.Has(lower, user), marks[k] == 1)
					require.Equal(t, share.Has(&cell, user), marks[k] == 1)
					in[k] += int(marks[k])
				}
			}
			for k := range users {
				require.Equal(t, 1, in[k])
			}
		}
	})
}

// TestCellsNeverChange compares cells with users that an independent program computed for the same
// boundaries.
func TestCellsNeverChange(t *testing.T) {
	t.Parallel()
	cell, err := share.NewCell(share.Sample, 5, 10, "a")
	require.NoError(t, err)
	ten := of(newShare(t, share.Sample, 10, "a"), 300)
	five := of(newShare(t, share.Sample, 5, "a"), 300)
	var between []uint32
	for _, user := range ten {
		if !slices.Contains(five, user) {
			between = append(between, user)
		}
	}
	require.Equal(t, between, of(&cell, 300))
	require.NotEmpty(t, five)
	require.Len(t, ten, 28) // from TestSharesNeverChange
}

func TestBoundariesOfCells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to float64
		salt     string
		fault    string
	}{
		"backwards":    {20, 10, "a", "to: must be a percentage above the value of 'from' (20), got 10"},
		"empty":        {10, 10, "a", "to: must be a percentage above the value of 'from' (10), got 10"},
		"below 0":      {-1, 10, "a", "from: must be a percentage of at least 0 and below 100, got -1"},
		"from 100":     {100, 100, "a", "from: must be a percentage of at least 0 and below 100, got 100"},
		"to 0":         {0, 0, "a", "to: must be a percentage above 0 and at most 100, got 0"},
		"above 100":    {0, 100.5, "a", "to: must be a percentage above 0 and at most 100, got 100.5"},
		"no number":    {math.NaN(), 10, "a", "from: must be"},
		"to no number": {1, math.NaN(), "a", "to: must be"},
		"no salt":      {1, 2, "", "salt: must be a text of 1 to 128 bytes"},
	} {
		_, err := share.NewCell(share.Sample, c.from, c.to, c.salt)
		require.ErrorContains(t, err, c.fault, name)
	}
}

// TestSharesAreIndependent checks that two shares do not depend on each other. Of 200,000 users, the number
// in both must be within five standard deviations of the expected number. The test draws no random number,
// so that its result never changes.
func TestSharesAreIndependent(t *testing.T) {
	t.Parallel()
	const users = 200_000
	shares := []*share.Share{
		newShare(t, share.Holdout, 20, "2027-q1"), newShare(t, share.Sample, 20, "2027-q1"),
		newShare(t, share.Holdout, 20, "2027-q2"), newShare(t, share.Sample, 20, "2027-q2"),
		newShare(t, share.Holdout, 20, "2027-q1:"),
	}
	near := func(n int, expected float64) {
		t.Helper()
		deviation := math.Sqrt(expected * (1 - expected/users))
		require.InDelta(t, expected, float64(n), 5*deviation)
	}
	for i, a := range shares {
		near(len(of(a, users)), 0.2*users)
		for _, b := range shares[i+1:] {
			both := 0
			for user := range uint32(users) {
				if share.Has(a, user) && share.Has(b, user) {
					both++
				}
			}
			near(both, 0.04*users)
		}
	}
}

// TestSharesAreEven checks with a chi-square test that a share is even over 1,000 ranges of 1,000 users.
func TestSharesAreEven(t *testing.T) {
	t.Parallel()
	s := newShare(t, share.Holdout, 10, "2027-q1")
	marks, users := make([]uint8, 1000), make([]uint32, 1000)
	sum := 0.0
	for stretch := range uint32(1000) {
		clear(marks)
		for i := range users {
			users[i] = stretch*1000 + uint32(i)
		}
		share.Mark(s, users, marks, 1)
		n := 0
		for _, mark := range marks {
			n += int(mark)
		}
		sum += (float64(n) - 100) * (float64(n) - 100) / 90
	}
	require.InDelta(t, 1000, sum, 5*math.Sqrt(2*1000))
}

func TestMarkDoesNotAllocate(t *testing.T) {
	s := newShare(t, share.Holdout, 10, "2027-q1")
	users, marks := make([]uint32, 100), make([]uint8, 100)
	require.Zero(t, testing.AllocsPerRun(10, func() { share.Mark(s, users, marks, 1); share.Has(s, uint32(9)) }))
}

func BenchmarkMark(b *testing.B) {
	s := newShare(b, share.Holdout, 10, "2027-q1")
	users, marks := make([]uint32, 10_000), make([]uint8, 10_000)
	for i := range users {
		users[i] = uint32(i) * 27
	}
	for b.Loop() {
		clear(marks)
		share.Mark(s, users, marks, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
}
