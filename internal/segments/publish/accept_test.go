package publish

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

func TestParseAcceptance(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]string{
		"opted-out: -57%": "-57%", "tz/Asia/Singapore:vanishes": "vanishes", "a: empties": "empties",
		"a:  -0.04%  +3% ": "-0.04%  +3%", "a: +300%": "+300%", "a: -90": "-90",
	} {
		a, err := ParseAcceptance(text, " because ")
		require.NoError(t, err, text)
		require.Equal(t, change, a.Change)
		require.Equal(t, "because", a.Reason)
	}
	for _, text := range []string{
		"opted-out", ": -57%", "a b: -57%", "a:", "a: 57%", "a: -0%", "a: -0.0%", "a: -1e2%", "a: --5%", "a: -5%%",
		"a: -5% -6%", "a: -5.5", "a: -NaN%",
		"a: -.%", "a: -5.%", "a: appears", "a: -5% vanishes", "a: " + strings.Repeat("-", 70),
	} {
		_, err := ParseAcceptance(text, "because")
		require.Error(t, err, text)
	}
	for _, reason := range []string{"", " ", strings.Repeat("x", 1025)} {
		_, err := ParseAcceptance("a: -5%", reason)
		require.ErrorContains(t, err, "reason has ")
	}
}

func TestAcceptedChangesAreRoundedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	matches := func(change string, before, removed, added uint64) bool {
		a, err := NewAcceptance("a", change, "because")
		require.NoError(t, err)
		return a.matches(&Change{State: changed, Before: before, Removed: removed, Added: added})
	}
	require.True(t, matches("-57%", 1000, 574, 0))
	require.True(t, matches("-57%", 1000, 565, 0))
	require.False(t, matches("-57%", 1000, 576, 0))
	require.False(t, matches("-57%", 1000, 0, 570), "who joins does not leave")
	require.True(t, matches("-57.4%", 1000, 574, 0))
	require.False(t, matches("-57.0%", 1000, 574, 0))
	require.True(t, matches("-57% +3%", 1000, 570, 30))
	require.False(t, matches("-57% +3%", 1000, 570, 300))
	require.True(t, matches("-90", 100090, 90, 5))
	require.False(t, matches("-90", 100090, 91, 0))
	require.False(t, matches("-1%", 100000, 0, 0))
	for _, c := range []Change{
		{Before: 1000, Removed: 574, Added: 30}, {Before: 27_000_000, Removed: 90}, {Before: 3, Removed: 1},
		{Before: 4, Added: 5},
		{Before: 100_090, Removed: 90}, {Before: 1_000_000, Removed: 999_999, Added: 1},
	} {
		c.Set, c.State = "a", changed
		a, err := ParseAcceptance(Suggest(&c), "because")
		require.NoError(t, err)
		require.True(t, a.matches(&c), Suggest(&c))
	}
}

// TestAcceptedChangesAreThoseThatAreShown checks that each percentage in a report can be accepted, and
// that no other percentage with the same number of digits can.
func TestAcceptedChangesAreThoseThatAreShown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.Uint64Range(2, 1<<32).Draw(t, "before")
		c := &Change{State: changed, Before: before, Removed: rapid.Uint64Range(1, before-1).Draw(t,
			"removed")}
		percent := percent(c.Removed, before)
		shown := segments.PercentText(percent)
		a, err := NewAcceptance("a", "-"+shown+"%", "because")
		require.NoError(t, err)
		require.True(t, a.matches(c), "%s of %v", shown, percent)
		_, fraction, _ := strings.Cut(shown, ".")
		a, err = NewAcceptance("a", "-"+segments.FormatPercent(percent+math.Pow(10, -float64(len(fraction))),
			len(fraction))+"%", "because")
		require.NoError(t, err)
		require.False(t, a.matches(c), "%s of %v", a.Change, percent)
		a, err = NewAcceptance("a", c.Words(), "because")
		require.True(t, err == nil && a.matches(c), c.Words())
	})
}

// fixture is a location with a live generation of a segment and sets, and with the limits that judge
// candidates.
type fixture struct {
	t   *testing.T
	at  objects.Location
	now time.Time
}

func (f *fixture) judge(b Bounds, c *Candidate) (*Findings, error) {
	base, err := ReadLiveState(f.t.Context(), f.at)
	require.NoError(f.t, err)
	return b.Judge(f.t.Context(), f.at, &Proposal{Candidate: c, Base: base}, f.now)
}

func (f *fixture) publish(c *Candidate) *segments.Manifest {
	base, err := ReadLiveState(f.t.Context(), f.at)
	require.NoError(f.t, err)
	publisher := Publisher{Location: f.at, ToolVersion: "test", Clock: func() time.Time { return f.now }}
	done, err := publisher.Publish(f.t.Context(), c, base, "")
	require.NoError(f.t, err)
	f.now = f.now.Add(24 * time.Hour)
	return done.Manifest
}

func of(t *testing.T, texts ...string) (list []acceptance) {
	for _, text := range texts {
		a, err := ParseAcceptance(text, "because")
		require.NoError(t, err)
		list = append(list, *a)
	}
	return list
}

func TestAnAcceptanceLetsOneChangePassAndNoOther(t *testing.T) {
	t.Parallel()
	f := &fixture{t, objects.NewDirectory(t.TempDir()), segmentstest.Epoch}
	build := func(segment, out, stop *bitmap.Bitmap) *Candidate {
		c := &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{segment},
			Sets: []Set{{Name: "out", Bitmap: out, Growth: grows(true, 0)}}}
		if stop != nil {
			c.Sets = append(c.Sets, Set{Name: "tz/Asia/Jakarta", Bitmap: stop})
		}
		return c
	}
	everybody, list, zone := bitmap.Range(0, 1000), bitmap.Range(0, 100), bitmap.Range(0, 30)
	was := f.publish(build(everybody, list, zone))

	bounds := Bounds{MaxChange: UsualMaxChange, Of: map[string]SegmentBounds{"tz/*": {FreeBelow: 1000}}}
	lost := func() *Candidate { return build(bitmap.Range(0, 430), bitmap.Range(57, 100), nil) }
	found, err := f.judge(bounds, lost())
	require.NoError(t, err)
	require.Len(t, found.Refusals, 4, "vip, its users' fall, out and the zone")
	require.Equal(t, []string{"vip: -57%", "out: -57%", "tz/Asia/Jakarta: vanishes"}, found.Acceptable)

	bounds.Accept = of(t, "out: -57%")
	c := lost()
	found, err = f.judge(bounds, c)
	require.NoError(t, err)
	require.Len(t, found.Refusals, 3, "but for out")
	require.Equal(t, []segments.Accepted{{Set: "out", FromSHA256: was.Sets[0].SHA256, ToSHA256: c.SHA256("out"),
		Before: 100, Removed: 57, Change: "-57%", Reason: "because"}}, c.Accepted)

	bounds.Accept = of(t, "out: -57%", "vip: -57%", "tz/Asia/Jakarta: vanishes")
	c = lost()
	found, err = f.judge(bounds, c)
	require.NoError(t, err)
	require.Empty(t, found.Refusals)
	require.Len(t, c.Accepted, 3)
	require.Empty(t, found.Acceptable)

	for accept, want := range map[string]string{
		"out: -56%":              `the acceptance "out: -56%" does not match the change: set "out" changes by -57%: 57 of 100 users leave, 0 join (--accept "out: -57%")`,
		"out: vanishes":          `set "out" changes by -57%`,
		"other: -57%":            `segment or set "other" is neither live nor in this build`,
		"tz/UTC: -57%":           `segment or set "tz/UTC"`,
		"tz/Asia/Jakarta: -100%": `set "tz/Asia/Jakarta" vanishes, with 30 users (--accept "tz/Asia/Jakarta: vanishes")`,
	} {
		bounds.Accept = of(t, accept)
		_, err := f.judge(bounds, lost())
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*AcceptError))
	}
	bounds.Accept = of(t, "out: -57%", "out: -57%")
	_, err = f.judge(bounds, lost())
	require.ErrorContains(t, err, "accepted twice")

	// The other direction, sizes and new names are judged all the same.
	bounds.Accept = of(t, "out: -57%")
	found, err = f.judge(bounds, build(everybody, bitmap.Range(57, 900), zone))
	require.NoError(t, err)
	require.Equal(t, []string{`set "out" grows by 800 users, 80 % of all 1000 users: at most 20 % is allowed`},
		found.Refusals)

	// What was accepted is no drift of the week, and passes once.
	bounds.Accept = of(t, "out: -57%")
	c = build(everybody, bitmap.Range(57, 100), zone)
	_, err = f.judge(bounds, c)
	require.NoError(t, err)
	after := f.publish(c)
	require.Equal(t, after.CreatedAt, after.Accepted[0].At)
	found, err = f.judge(bounds, build(everybody, bitmap.Range(57, 101), zone))
	require.NoError(t, err)
	require.Empty(t, found.Refusals)
	require.Equal(t, []string{"out: -57%"}, found.Used)
	require.NotNil(t, found.Drift)
	found, err = f.judge(bounds, build(everybody, bitmap.Range(82, 101), zone))
	require.NoError(t, err)
	require.Len(t, found.Refusals, 1, "57 % again")

	// Later generations carry it, as long as it says something to those who were away.
	next := f.publish(build(everybody, bitmap.Range(57, 101), zone))
	require.Equal(t, after.Accepted, next.Accepted)
	f.now = after.CreatedAt.Add(segments.MaxAcceptedAge + time.Hour)
	require.Empty(t, f.publish(build(everybody, bitmap.Range(57, 102), zone)).Accepted)
}

func TestNothingIsAcceptedOfAFirstPublish(t *testing.T) {
	t.Parallel()
	f := &fixture{t, objects.NewDirectory(t.TempDir()), segmentstest.Epoch}
	_, err := f.judge(Bounds{MaxChange: 20, Accept: of(t, "out: -57%")}, night("out", bitmap.Of(1), Growth{}))
	require.EqualError(t, err, `not published: the acceptance "out: -57%": no generation is live to compare with`)
}
