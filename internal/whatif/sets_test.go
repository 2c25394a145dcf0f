package whatif

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// askedOnce returns the replay of one call on channel 1, by its own generation or by the named one. The policy in force
// suppresses the sets. In every generation, the set opted-out has the users 2 and 4, and the set bounced the user 5.
func askedOnce(t *testing.T, other *capping.Policy, named string, sets []string, groups ...audit.Group) *Result {
	r := &audit.Record{
		Kind: audit.Filter, Instance: "00000000000000aa", Sequence: 1, Message: capping.Message{ID: "m"}, Channel: 1,
		At: capping.InstantOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)), Generation: "g", Config: "p",
		Groups: groups,
	}
	requested := audit.SegmentCount{}
	for _, g := range groups {
		requested.Requested += g.Count()
		if g.Outcome == audit.Denied {
			requested.Denied += g.Count()
		} else {
			requested.Allowed += g.Count()
		}
	}
	r.Segments = []audit.SegmentCount{requested}
	inForce := suppressing("p", 1, sets...)
	result, err := Run(t.Context(), all([]*audit.Record{r}), Config{
		Policy: other, Generation: named,
		Policies: func(string) (*capping.Policy, error) { return inForce, nil },
		Generations: func(name string) (capping.Segments, error) {
			return &testGeneration{generation{name: name, sets: map[string]members{
				"opted-out": {2: true, 4: true}, "bounced": {5: true},
			}}}, nil
		},
	})
	require.NoError(t, err)
	return result
}

// testGeneration is a generation whose sets have an age.
type testGeneration struct{ generation }

// AsOf is long ago for every set.
func (g *testGeneration) AsOf(string) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func suppressing(version string, weekly int, sets ...string) *capping.Policy {
	p := &capping.Policy{Version: version, Channels: map[string]capping.Channel{"email": 1},
		Default: []capping.Limit{{Name: "weekly", Max: weekly, Window: 7 * day}}}
	for _, set := range sets {
		p.Suppress = append(p.Suppress, capping.Suppression{Set: set})
	}
	return p
}

func allowedOf(users ...uint32) audit.Group {
	return audit.Group{Outcome: audit.Allowed, Users: bitmap.OfSorted(users)}
}

func suppressedBy(set string, users ...uint32) audit.Group {
	return audit.Group{Outcome: audit.Denied, By: capping.BySuppression, Limit: "suppressed", Set: set,
		Users: bitmap.OfSorted(users)}
}

// TestASetIsAsTheRecordShowsIt checks that changes of sets by calls, which no generation contains, stand in a replay.
// A call added the user 1 to the set opted-out and removed the user 2 from it.
func TestASetIsAsTheRecordShowsIt(t *testing.T) {
	t.Parallel()
	record := []audit.Group{allowedOf(2, 3), suppressedBy("opted-out", 1, 4)}
	for name, try := range map[string]struct {
		other      *capping.Policy
		generation string
		sets       []string
		record     []audit.Group
		sends      int64 // under the other policy
		gained     int64
		unjudged   int64
	}{
		"a change that plays no part": {suppressing("q", 4, "opted-out"), "", []string{"opted-out"}, record, 2, 0, 0},
		"the call's own generation":   {suppressing("q", 4, "opted-out"), "g", []string{"opted-out"}, record, 2, 0, 0},
		"without the suppression":     {suppressing("q", 4), "", []string{"opted-out"}, record, 4, 2, 0},
		// 1 and 4 are in opted-out, which the other policy does not suppress; bounced is the generation's.
		"another set": {suppressing("q", 4, "bounced"), "", []string{"opted-out"}, record, 4, 2, 0},
		// The generation decides: 2 and 4 are in the set.
		"another generation": {suppressing("q", 4, "opted-out"), "h", []string{"opted-out"}, record, 2, 1, 0},
		"a set that calls alone make": {suppressing("q", 4, "stopped"), "", []string{"stopped"},
			[]audit.Group{allowedOf(2, 3), suppressedBy("stopped", 1)}, 2, 0, 0},
		"a set that another generation lacks": {suppressing("q", 4, "stopped"), "h", []string{"stopped"},
			[]audit.Group{allowedOf(2, 3), suppressedBy("stopped", 1)}, 2, 0, 0},
		"a set that nobody knows": {suppressing("q", 4, "stopped"), "", []string{"opted-out"}, record, 0, 0, 4},
		// A call removed 4 from opted-out, and added it to bounced. Of 1 nothing says whether it is in bounced too.
		"the second of two sets": {suppressing("q", 4, "opted-out"), "", []string{"opted-out", "bounced"},
			[]audit.Group{allowedOf(3, 5), suppressedBy("opted-out", 1), suppressedBy("bounced", 4)}, 3, 1, 0},
		"the sets in another order": {suppressing("q", 4, "bounced", "opted-out"), "",
			[]string{"opted-out", "bounced"},
			[]audit.Group{allowedOf(3, 5), suppressedBy("opted-out", 1), suppressedBy("bounced", 4)}, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := askedOnce(t, try.other, try.generation, try.sets, try.record...)
			require.Equal(t, got.Asked, got.Judged)
			require.Equal(t, []int64{try.sends, try.gained, try.unjudged},
				[]int64{got.Total.After.Sends, got.Total.Gained, got.Total.After.Unjudged}, "%+v", got.Total)
		})
	}
}

// TestTheAgeOfASetStaysKnown checks that max_age of the other policy applies to sets of the generation, but not to sets
// that calls alone make.
func TestTheAgeOfASetStaysKnown(t *testing.T) {
	t.Parallel()
	for set, unjudged := range map[string]int64{"opted-out": 2, "stopped": 0} {
		other := suppressing("q", 4, set)
		other.Suppress[0].MaxAge = day
		require.Equal(t, unjudged, askedOnce(t, other, "", []string{set}, allowedOf(3), suppressedBy(set, 1)).
			Total.After.Unjudged, set)
	}
}

// TestAnotherGenerationIsSaid checks that a result says when changes by calls are left out.
func TestAnotherGenerationIsSaid(t *testing.T) {
	t.Parallel()
	other := suppressing("q", 4, "opted-out")
	notes := askedOnce(t, other, "h", nil, allowedOf(3)).Notes
	require.Contains(t, notes, "the sets of generation h decide every call "+
		"that used another generation: changes of sets by calls are left out there")
	require.Empty(t, askedOnce(t, other, "", nil, allowedOf(3)).Notes)
	require.Empty(t, askedOnce(t, suppressing("q", 4), "h", nil, allowedOf(3)).Notes)
}

// TestAnAbsentRuleIsSaid checks that a result names the rules that denied recorded sends and that the limits lack.
func TestAnAbsentRuleIsSaid(t *testing.T) {
	t.Parallel()
	record := []audit.Group{allowedOf(3), suppressedBy("opted-out", 1, 2)}
	other := suppressing("q", 4, "opted-out")
	require.Empty(t, askedOnce(t, other, "", []string{"opted-out"}, record...).Notes)
	other.Suppress = nil
	require.Equal(t, []string{"these limits lack the key suppress, whose rule denied 2 of the recorded sends: add " +
		"the key to keep the rule"}, askedOnce(t, other, "", []string{"opted-out"}, record...).Notes)
}
