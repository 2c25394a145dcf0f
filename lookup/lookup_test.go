package lookup_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/testkit"
	"capper/lookup"
)

func follow(t testing.TB, cfg lookup.Config) *lookup.Follower {
	t.Helper()
	if cfg.Interval == 0 {
		cfg.Interval = 5 * time.Millisecond
	}
	f, err := lookup.Follow(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

func TestAFollowerAnswersAndFollows(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, source string, at objects.Location) {
		m := first(t, at)
		f := follow(t, lookup.Config{Source: source})
		g := f.Current()
		require.Equal(t, m.Generation, g.Name())
		require.Equal(t, day(0), g.CreatedAt())
		requireFirst(t, g)
		status := f.Status()
		require.Equal(t, m.Generation, status.Generation)
		require.Equal(t, day(0), status.CreatedAt)
		require.False(t, status.FromCache)
		require.Empty(t, status.Error)

		next := publish(t, at, day(1), []group{{"active", bitmap.Of(1)}}, []group{{"opted-out", bitmap.Of(2)}})
		testkit.Eventually(t, func() bool { return f.Current().Name() == next.Generation })
		require.Equal(t, lookup.NoSegment, f.Current().Segment(2))
		requireFirst(t, g) // whoever holds it sees no change
		f.Close()
		f.Close()
		require.Equal(t, "active", f.Current().Segment(1))
	})
}

// requireFirst checks every answer of the generation that first publishes.
func requireFirst(t *testing.T, g *lookup.Generation) {
	t.Helper()
	require.Equal(t, []string{"active", "vip"}, g.Segments())
	require.Equal(t, []string{"opted-out", "country/sg"}, g.Sets())
	require.Positive(t, g.SizeBytes())
	optedOut, err := g.Set("opted-out")
	require.NoError(t, err)
	require.Equal(t, "opted-out", optedOut.Name())
	require.EqualValues(t, 20, optedOut.Users())
	vip, err := g.Set("vip")
	require.NoError(t, err)

	users := make([]uint32, 0, 300)
	for id := range uint32(300) {
		users = append(users, id)
	}
	codes, inSet, inSegment := make([]uint8, 300), make([]bool, 300), make([]bool, 300)
	g.SegmentCodes(users, codes)
	optedOut.Mark(users, inSet)
	vip.Mark(users, inSegment)
	for _, id := range users {
		segment, code := "default", 0
		if id < 100 {
			segment, code = "active", 1
		} else if id < 150 {
			segment, code = "vip", 2
		}
		require.Equal(t, segment, g.Segment(id))
		require.EqualValues(t, code, codes[id])
		out := id >= 140 && id < 160
		requireContains(t, g, "opted-out", id, out)
		requireContains(t, g, "vip", id, segment == "vip")
		require.Equal(t, out, optedOut.Contains(id))
		require.Equal(t, out, inSet[id])
		require.Equal(t, segment == "vip", vip.Contains(id))
		require.Equal(t, segment == "vip", inSegment[id])
	}
}

func requireContains(t *testing.T, g *lookup.Generation, name string, user uint32, want bool) {
	t.Helper()
	in, err := g.Contains(name, user)
	require.NoError(t, err)
	require.Equal(t, want, in, "%s %d", name, user)
}

func TestNamesThatAreNotThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := first(t, objectstest.Open(t, dir))
	g := follow(t, lookup.Config{Source: dir}).Current()
	var unknown *lookup.UnknownError
	_, err := g.Contains("bounced", 1)
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, err, "lookup: generation "+m.Generation+` has no segment or set "bounced"`)
	_, err = g.Set("default")
	require.ErrorAs(t, err, &unknown)
	var none lookup.Set
	in := []bool{true}
	none.Mark([]uint32{1}, in)
	require.False(t, none.Contains(1) || in[0])
}

func TestAudiences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := first(t, objectstest.Open(t, dir))
	g := follow(t, lookup.Config{Source: dir, Expressions: map[string]string{"reachable": "all - opted-out"}}).Current()
	a, err := g.Audience("reachable & (active | vip) - country/sg")
	require.NoError(t, err)
	require.Equal(t, m.Generation, a.Generation())
	var want []uint32
	for id := range uint32(140) {
		if id < 10 || id >= 20 {
			want = append(want, id)
		}
	}
	requireUsers(t, a, want)

	var parts []uint32
	for index := range 3 {
		part, err := a.Part(index, 3)
		require.NoError(t, err)
		sampled, err := part.Sample(100, "all of them")
		require.NoError(t, err)
		list := usersOf(t, sampled, 7)
		require.InDelta(t, len(want)/3, len(list), 1)
		parts = append(parts, list...)
	}
	require.Equal(t, want, parts)
	sampled, err := a.Sample(50, "a")
	require.NoError(t, err)
	half := usersOf(t, sampled, 10)
	require.InDelta(t, len(want)/2, len(half), 30)
	requireUsers(t, sampled, half)
	requireUsers(t, a, want)

	var cells []uint32
	for _, cell := range [][2]float64{{0, 50}, {50, 66.6}, {66.6, 100}} {
		of, err := a.Cell(cell[0], cell[1], "a")
		require.NoError(t, err)
		cells = append(cells, usersOf(t, of, 10)...)
	}
	require.Equal(t, half, cells[:len(half)], "a sample is the cell from 0")
	require.ElementsMatch(t, want, cells)
}

func requireUsers(t *testing.T, a *lookup.Audience, want []uint32) {
	t.Helper()
	n, err := a.Count(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, len(want), n)
	for _, most := range []int{0, 1, 64, 1_000} {
		require.Equal(t, want, usersOf(t, a, most))
	}
	raw, err := a.Bitmap(t.Context())
	require.NoError(t, err)
	b := roaring.New()
	_, err = b.FromBuffer(raw)
	require.NoError(t, err)
	require.Equal(t, want, b.ToArray())
}

func usersOf(t *testing.T, a *lookup.Audience, most int) (list []uint32) {
	t.Helper()
	for users, err := range a.Users(t.Context(), most) {
		require.NoError(t, err)
		require.LessOrEqual(t, len(users), max(most, 1))
		list = append(list, users...)
	}
	return list
}

func TestFaultsOfAudiences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first(t, objectstest.Open(t, dir))
	g := follow(t, lookup.Config{Source: dir}).Current()
	for expression, want := range map[string]lookup.ExpressionError{
		"active -":          {Column: 9},
		"active - optedout": {Column: 10, Nearest: "opted-out"},
		"active-vip":        {Column: 1},
		"":                  {Column: 1},
	} {
		_, err := g.Audience(expression)
		var is *lookup.ExpressionError
		require.ErrorAs(t, err, &is, expression)
		require.Equal(t, want.Column, is.Column, expression)
		require.Equal(t, want.Nearest, is.Nearest, expression)
		require.Equal(t, expression, is.Expression)
	}
	_, err := g.Audience("active -")
	require.EqualError(t, err, `lookup: audience "active -": column 9: expected a name or "(", got the end`)

	a, err := g.Audience("all")
	require.NoError(t, err)
	_, err = a.Sample(0, "a")
	require.EqualError(t, err, "lookup: sample: percent: must be a percentage above 0 and at most 100, got 0")
	_, err = a.Cell(20, 10, "a")
	require.EqualError(t, err,
		"lookup: range of users: to: must be a percentage above the value of 'from' (20), got 10")
	for part, want := range map[[2]int]string{
		{0, 0}:      "lookup: part 0 of 0: the number of parts must be 1 to 10000",
		{0, 10_001}: "lookup: part 0 of 10001: the number of parts must be 1 to 10000",
		{-1, 3}:     "lookup: part -1 of 3: the number of the part must be 0 to 2",
		{3, 3}:      "lookup: part 3 of 3: the number of the part must be 0 to 2",
	} {
		_, err = a.Part(part[0], part[1])
		require.EqualError(t, err, want)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Count(gone)
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.Bitmap(gone)
	require.ErrorIs(t, err, context.Canceled)
	for _, err := range a.Users(gone, 10) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	dir := t.TempDir()
	first(t, objectstest.Open(t, dir))
	f := follow(t, lookup.Config{Source: dir, Interval: time.Hour})
	users, codes, in := []uint32{1, 145, 70_000}, make([]uint8, 3), make([]bool, 3)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		g := f.Current()
		_ = g.Segment(145)
		_, _ = g.Contains("opted-out", 145)
		set, _ := g.Set("country/sg")
		_ = set.Contains(15)
		g.SegmentCodes(users, codes)
		set.Mark(users, in)
	}))
}

// TestNothingInternalIsInSight checks that the exported API uses no type of an internal package, which
// other modules cannot import.
func TestNothingInternalIsInSight(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "doc", "-all", "capper/lookup").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, segments.ReservedName, lookup.NoSegment)
	require.NotRegexp(t, `\b(audience|bitmap|objects|segments|share)\.[A-Z]`, string(out))
}
