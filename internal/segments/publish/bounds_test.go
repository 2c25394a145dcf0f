package publish

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/segments/segmentstest"
)

func pointerTo[T any](v T) *T { return &v }

func TestGuardJudgesChanges(t *testing.T) {
	t.Parallel()
	before := segmentstest.Generation(t, []string{"vip", "active", "lapsed", "old", "none"},
		bitmap.Range(0, 10), bitmap.Range(100, 200), bitmap.Range(1000, 1100), bitmap.Range(5000, 5010), bitmap.Of())
	after := &Candidate{Names: []string{"vip", "active", "lapsed", "ACTIVE", "none"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 10), bitmap.Range(110, 210), bitmap.Of(), bitmap.Range(1000, 1020),
			bitmap.Of(7000)}}
	changes, none := after.Compare(before), after.NoSegment(before)
	judge := func(b Bounds) (refusals []string) {
		for _, c := range changes {
			refusals = append(refusals, b.judgeChange(&c, changes)...)
		}
		return append(refusals, b.judgeFall(none, "")...)
	}
	always := []string{
		`segment "lapsed" empties (it has 100 users now)`,
		`segment "old" vanishes (it has 10 users now)`,
	}
	require.Equal(t, []string{
		always[0],
		`segment "ACTIVE" is new, with 20 users ("active" is live and differs only by case): use --allow-new ACTIVE if this is intended`,
		`segment "none" has no users now and would have 1: use --allow-new none if this is intended`,
		always[1],
		"100 of 220 users are in no segment and get the default limits: that is 45.5 %, but at most 20 % is allowed",
	}, judge(Bounds{MaxChange: 20}), "exactly 20 % is not above 20 %")
	require.Equal(t, always, judge(Bounds{MaxChange: 1000, New: []string{"ACTIVE", "none"}}),
		"nothing but force lets a segment vanish or empty")
	require.Equal(t, always, judge(Bounds{MaxChange: 20, MaxUnassigned: pointerTo(45.5),
		New: []string{"ACTIVE", "none"}}))

	bounds := Bounds{MaxChange: 20, MaxUnassigned: pointerTo(100.0), New: []string{"ACTIVE", "none"},
		Of: map[string]SegmentBounds{"active": {MaxChange: pointerTo(19.9)}}}
	require.Equal(t, append([]string{
		`segment "active" changes by 20 %, but at most 19.9 % is allowed: 10 users join and 10 leave, of ` +
			`100 users`}, always...),
		judge(bounds))
	bounds.MaxChange, bounds.Of = 1, map[string]SegmentBounds{"active": {MaxChange: pointerTo(20.0)}}
	require.Equal(t, always, judge(bounds), "a segment's own bound goes over the general one")
}

func TestGuardJudgesSizes(t *testing.T) {
	t.Parallel()
	c := &Candidate{Names: []string{"vip", "active"}, Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 10),
		bitmap.Range(100, 200)}}
	of := func(least, most uint64) map[string]SegmentBounds {
		return map[string]SegmentBounds{"vip": {MinUsers: &least, MaxUsers: &most}, "other": {MinUsers: &most}}
	}
	require.Empty(t, (&Bounds{Of: of(10, 10)}).judgeSizes(c))
	require.Equal(t, []string{`segment "vip" has 10 users, at least 11 are expected (min_users)`},
		(&Bounds{Of: of(11, 12)}).judgeSizes(c))
	require.Equal(t, []string{`segment "vip" has 10 users, at most 9 are expected (max_users)`},
		(&Bounds{Of: of(0, 9)}).judgeSizes(c))
}

func TestGuardJudgesTheWeek(t *testing.T) {
	t.Parallel()
	before := segmentstest.Generation(t, []string{"vip", "active", "gone", "none"}, bitmap.Range(0, 10),
		bitmap.Range(100, 200), bitmap.Range(300, 310), bitmap.Of())
	after := &Candidate{Names: []string{"vip", "active", "young", "none"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Of(), bitmap.Range(100, 149), bitmap.Range(0, 10), bitmap.Of(9)}}
	drift, none := after.Drift(before), after.NoSegment(before)
	judge := func(b Bounds) (refusals []string) {
		for _, c := range drift {
			refusals = append(refusals, b.judgeDrift("G", &c)...)
		}
		return append(refusals, b.judgeFall(none, " since G")...)
	}
	own := func(change, week *float64) map[string]SegmentBounds {
		return map[string]SegmentBounds{"active": {MaxChange: change, MaxWeekChange: week}}
	}
	refused := []string{`segment "active" changes by 51 % since G, at most 50 % is allowed in a week: 0 users added, 51 removed, 100 before`}
	require.Equal(t, append(refused[:1:1], "61 of 120 users are in no segment since G and get the default limits: "+
		"that is 50.8 %, but at most 20 % is allowed"),
		judge(Bounds{MaxChange: 20}), "what emptied, filled, came and went since then has been judged")
	wide := pointerTo(100.0)
	require.Equal(t, refused, judge(Bounds{MaxChange: 20, MaxUnassigned: wide}))
	require.Empty(t, judge(Bounds{MaxChange: 20.4, MaxUnassigned: wide}), "two and a half times the bound for the day")
	require.Empty(t, judge(Bounds{MaxChange: 20, MaxWeekChange: pointerTo(51.0), MaxUnassigned: wide}))
	require.Empty(t, judge(Bounds{MaxChange: 1, MaxUnassigned: wide, Of: own(pointerTo(20.4), nil)}),
		"a segment's own likewise")
	require.Len(t, judge(Bounds{MaxChange: 1000, MaxUnassigned: wide, Of: own(pointerTo(20.3), nil)}), 1)
	require.Empty(t, judge(Bounds{MaxChange: 20, MaxUnassigned: wide, Of: own(wide, nil)}))
	require.Empty(t, judge(Bounds{MaxChange: 20, MaxUnassigned: wide, Of: own(nil, wide)}))
	require.Len(t, judge(Bounds{MaxChange: 20, MaxWeekChange: pointerTo(20.0), MaxUnassigned: wide,
		Of: own(wide, nil)}), 1,
		"a bound for the week goes over one for the day")
}
