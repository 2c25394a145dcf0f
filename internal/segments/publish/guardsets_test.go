package publish

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

func grows(said bool, maxLoss float64) Growth {
	return Growth{Said: said, OnlyGrows: said, MaxLoss: maxLoss}
}

// night returns a candidate of one unchanged segment and one set.
func night(name string, b *bitmap.Bitmap, growth Growth) *Candidate {
	return &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1)},
		Sets: []Set{{Name: name, Bitmap: b, Growth: growth}}}
}

func TestGuardJudgesSets(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	now := segmentstest.Epoch
	bounds := Bounds{MaxChange: UsualMaxChange}
	judge := func(c *Candidate) []string {
		base, err := ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		found, err := bounds.Judge(t.Context(), at, &Proposal{Candidate: c, Base: base}, now)
		require.NoError(t, err)
		return found.Refusals
	}
	goLive := func(c *Candidate) {
		base, err := ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		publisher := Publisher{Location: at, ToolVersion: "test", Clock: func() time.Time { return now }}
		_, err = publisher.Publish(t.Context(), c, base, "")
		require.NoError(t, err)
		now = now.Add(24 * time.Hour)
	}
	silent := Growth{}
	require.Equal(t, []string{`in a first publish set "out" has no users: use --allow-first empty-sets if this is intended`},
		judge(night("out", bitmap.Of(), silent)))
	goLive(night("out", bitmap.Range(0, 1000), grows(true, 1)))

	require.Empty(t, judge(night("out", bitmap.Range(10, 1000), silent)), "exactly 1 % may leave")
	require.Equal(t, []string{
		`set "out" only grows, and 11 of its 1000 users leave, such as 0, 1, 2, 3, 4: at most 1 % may`},
		judge(night("out", bitmap.Range(11, 1000), silent)), "also where nobody says so")
	require.Equal(t, []string{`set "out" vanishes (it has 1000 users now)`,
		`set "young" is new, with 1 users: use --allow-new young if this is intended`},
		slices.Sorted(slices.Values(judge(night("young", bitmap.Of(1), silent)))))
	require.Equal(t, []string{`set "out" grows by 201 users, 20.1 % of all 1000 users: at most 20 % is allowed`},
		judge(night("out", bitmap.Range(0, 1201), silent)), "what doubles overnight is odd as well")
	require.Empty(t, judge(night("out", bitmap.Range(0, 1200), silent)))
	require.Len(t, judge(night("out", bitmap.Range(0, 1000), Growth{Said: true})), 1, "lifted")
	require.Len(t, judge(night("out", bitmap.Range(0, 1000), grows(true, 1.1))), 1, "loosened")
	require.Empty(t, judge(night("out", bitmap.Range(0, 1000), grows(true, 0.9))), "tightened")
	require.Equal(t, []string{
		`set "out" only grows, and 10 of its 1000 users leave, such as 0, 1, 2, 3, 4: at most 0.9 % may`},
		judge(night("out", bitmap.Range(10, 1000), grows(true, 0.9))), "the stricter of what was said and is "+
			"said counts")

	// 1 % each night is 2.5 % in a week at most.
	goLive(night("out", bitmap.Range(10, 1000), silent))
	goLive(night("out", bitmap.Range(19, 1000), silent))
	require.Empty(t, judge(night("out", bitmap.Range(25, 1000), silent)))
	refusals := judge(night("out", bitmap.Range(26, 1000), silent))
	require.Len(t, refusals, 1)
	require.Regexp(t, `^set "out" only grows, and 26 of its 1000 users leave since 2026.*, such as 0, 1, 2, 3, 4: at most 2.5 % may in a week$`, refusals[0])

	// A set's own bounds, and those of its folder where it is too small to tell.
	bounds.Of = map[string]SegmentBounds{"out": {MinUsers: pointerTo(uint64(990))}}
	require.Equal(t, []string{`set "out" has 980 users, at least 990 are expected (min_users)`},
		judge(night("out", bitmap.Range(20, 1000), silent)))

	// current.json is lost: what only grows is taken from the newest generation.
	require.NoError(t, at.Delete(t.Context(), segments.CurrentKey))
	bounds.Of = nil
	c := night("out", bitmap.Range(19, 1000), silent)
	require.Empty(t, judge(c))
	require.Equal(t, grows(true, 1), c.Sets[0].Growth)
}

func TestGuardLeavesSmallSetsOfAFolderAlone(t *testing.T) {
	t.Parallel()
	bounds := Bounds{MaxChange: 20, Of: map[string]SegmentBounds{"tz/*": {FreeBelow: 100}, "tz/UTC": {}}}
	before := night("tz/Asia/Jakarta", bitmap.Range(0, 50), Growth{})
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "", before.Describe(), before.DescribeSets()...)
	require.NoError(t, err)
	g := &segments.Generation{Manifest: m, Bitmaps: before.Bitmaps, Sets: []*bitmap.Bitmap{before.Sets[0].Bitmap}}
	judge := func(c *Candidate) (refusals []string) {
		changes, judged := c.CompareSets(g), bounds.newSetJudge(c, g)
		for _, change := range changes {
			refusals = append(refusals, judged.change(&change, changes)...)
		}
		return refusals
	}
	vanishes := `set "tz/Asia/Jakarta" vanishes (it has 50 users now)`
	require.Empty(t, judge(night("tz/Asia/Jakarta", bitmap.Range(0, 99), Growth{})))
	require.Len(t, judge(night("tz/Asia/Jakarta", bitmap.Range(0, 100), Growth{})), 1)
	require.Equal(t, []string{vanishes}, judge(night("tz/Europe/Berlin", bitmap.Of(1), Growth{})),
		"a zone comes, but none goes")
	require.Equal(t, []string{`set "tz/UTC" is new, with 1 users: use --allow-new tz/UTC if this is intended`, vanishes},
		judge(night("tz/UTC", bitmap.Of(1), Growth{})), "its own bounds go over those of the folder")
	bounds.New = []string{"tz/*"}
	require.Equal(t, []string{vanishes}, judge(night("tz/UTC", bitmap.Of(1), Growth{})))
	require.False(t, bounds.mayAppear("country/sg"))
	require.False(t, bounds.mayAppear("tz"))

	require.Equal(t, []string{`set "tz/Asia/Jakarta" empties (it has 50 users now)`},
		judge(night("tz/Asia/Jakarta", bitmap.Of(), Growth{})))
	require.Equal(t, []string{`set "tz/Asia/Jakarta" loses most of its users: 26 of 50 are in no time zone any more`},
		judge(night("tz/Asia/Jakarta", bitmap.Range(0, 24), Growth{})))
	require.Empty(t, judge(night("tz/Asia/Jakarta", bitmap.Range(0, 25), Growth{})), "half is not most")
	moved := night("tz/Asia/Jakarta", bitmap.Range(0, 5), Growth{})
	moved.Sets = append(moved.Sets, Set{Name: "tz/Asia/Makassar", Bitmap: bitmap.Range(5, 40)})
	require.Empty(t, judge(moved), "who moved to another zone keeps quiet hours")
}

// TestGuardJudgesGrowthByAllUsers checks that five users may join a list of four, but that a list must
// not grow to all users.
func TestGuardJudgesGrowthByAllUsers(t *testing.T) {
	t.Parallel()
	list := func(b *bitmap.Bitmap) *Candidate {
		return &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 100),
			bitmap.Range(100, 400)},
			Sets: []Set{{Name: "out", Bitmap: b, Growth: grows(true, 0)}}}
	}
	judge := func(b Bounds, was, is *bitmap.Bitmap) (refusals []string) {
		before, c := list(was), list(is)
		m, err := segments.NewManifest(segmentstest.Epoch, "test", "", before.Describe(), before.DescribeSets()...)
		require.NoError(t, err)
		judged := b.newSetJudge(c, &segments.Generation{Manifest: m, Bitmaps: before.Bitmaps,
			Sets: []*bitmap.Bitmap{was}})
		for _, change := range c.CompareSets(judged.before) {
			refusals = append(refusals, judged.change(&change, nil)...)
			refusals = append(refusals, judged.week("G", &change)...)
		}
		return refusals
	}
	usual := Bounds{MaxChange: UsualMaxChange}
	require.Empty(t, judge(usual, bitmap.Range(0, 4), bitmap.Range(0, 9)))
	require.Empty(t, judge(usual, bitmap.Of(), bitmap.Range(0, 80)), "the first who objects")
	require.Equal(t, []string{`set "out" grows by 81 users, 20.3 % of all 400 users: at most 20 % is allowed`},
		judge(usual, bitmap.Of(), bitmap.Range(0, 81)))
	require.Len(t, judge(usual, bitmap.Range(0, 4), bitmap.Range(0, 400)), 2, "also in a week")
	require.Len(t, judge(usual, bitmap.Range(0, 4), bitmap.Range(1, 9)), 2, "who leaves is of the list, also in a week")
	require.Equal(t, []string{`set "out" grows by 5 users, 125 % of its 4 users: at most 50 % is allowed`},
		judge(Bounds{MaxChange: 1000, Of: map[string]SegmentBounds{"out": {MaxChange: pointerTo(50.0),
			MaxWeekChange: pointerTo(200.0)}}}, bitmap.Range(0, 4), bitmap.Range(0, 9)),
		"a bound of the set's own is of the set")
}
