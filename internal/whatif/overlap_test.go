package whatif

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Two calls ask of user 1, who may get one a day, and the first of them is denied by what the second one sent.
func TestARecheckLeavesOpenWhichCallOfTwoAtTheSameTimeWasFirst(t *testing.T) {
	t.Parallel()
	const other = "00000000000000bb"
	for name, c := range map[string]struct {
		took     time.Duration // of the first
		later    capping.Instant
		instance string
		user     capping.UserID
		outcome  audit.Outcome
		differ   int64
	}{
		"begun in the same millisecond":          {took: 0, later: 0, instance: other, user: 1, outcome: audit.Allowed},
		"begun within the first one":             {took: 17 * time.Millisecond, later: 9, instance: other, user: 1, outcome: audit.Allowed},
		"begun later, of clocks that may differ": {took: time.Millisecond, later: 20, instance: other, user: 1, outcome: audit.Allowed},
		"a call of an unknown outcome":           {took: 17 * time.Millisecond, later: 9, instance: other, user: 1, outcome: audit.Unavailable},
		"begun later, at the same instance":      {took: time.Millisecond, later: 20, instance: "00000000000000aa", user: 1, outcome: audit.Allowed, differ: 1},
		"begun long after":                       {took: time.Millisecond, later: 2000, instance: other, user: 1, outcome: audit.Allowed, differ: 1},
		"about somebody else":                    {took: 17 * time.Millisecond, later: 9, instance: other, user: 2, outcome: audit.Allowed, differ: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := &capping.Policy{Version: "v", Channels: map[string]capping.Channel{"push": 1}, Default: []capping.Limit{{Name: "daily", Max: 1, Window: day}}}
			at := capping.InstantOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
			record := func(instance string, at capping.Instant, message string, g audit.Group) *audit.Record {
				return &audit.Record{
					Kind: audit.Filter, Instance: instance, Sequence: 1, At: at, Message: capping.Message{ID: message}, Channel: 1, Generation: "g", Config: "v",
					Groups: []audit.Group{g},
				}
			}
			first := record("00000000000000aa", at, "a", audit.Group{Outcome: audit.Denied, Limit: "daily", Users: sorted([]capping.UserID{1})})
			first.Took = c.took
			second := record(c.instance, at+c.later, "b", audit.Group{Outcome: c.outcome, Users: sorted([]capping.UserID{c.user})})
			second.Sequence = 2
			got, err := Run(t.Context(), all([]*audit.Record{first, second}), Config{
				Recheck: true, Differences: 10, Widen: 100 * time.Millisecond,
				Policies:    func(string) (*capping.Policy, error) { return policy, nil },
				Generations: func(string) (capping.Segments, error) { return &generation{name: "g"}, nil },
			})
			require.NoError(t, err)
			require.Equal(t, c.differ, got.Recheck.Differ)
			require.Equal(t, 1-c.differ, got.Recheck.Overlapping)
			require.Len(t, got.Recheck.First, int(c.differ))
			require.Equal(t, got.Recheck.Decisions, got.Judged)
		})
	}
}

// A denial that needs more sends than are recorded is named so, and is no difference where sends were imported; what
// imported sends cannot explain is one as ever.
func TestARecheckNamesWhatImportedSendsExplain(t *testing.T) {
	t.Parallel()
	policy := &capping.Policy{Version: "v", Channels: map[string]capping.Channel{"push": 1}, Default: []capping.Limit{{Name: "daily", Max: 1, Window: day}, {Name: "weekly", Max: 3, Window: 7 * day}}}
	at := capping.InstantOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	record := func(n int, g audit.Group) *audit.Record {
		return &audit.Record{
			Kind: audit.Filter, Instance: "00000000000000aa", Sequence: uint64(n), At: at + capping.Instant(n)*60_000, Message: capping.Message{ID: fmt.Sprint("m", n)},
			Channel: 1, Generation: "g", Config: "v", Groups: []audit.Group{g},
		}
	}
	users := func(ids ...capping.UserID) *bitmap.Bitmap { return sorted(ids) }
	records := []*audit.Record{
		record(1, audit.Group{Outcome: audit.Allowed, Users: users(1, 4)}),
		record(2, audit.Group{Outcome: audit.Denied, Limit: "weekly", Users: users(1)}),                                            // daily, by what is recorded
		record(3, audit.Group{Outcome: audit.Denied, Limit: "daily", Users: users(2, 3)}),                                          // nobody, by what is recorded
		record(4, audit.Group{Outcome: audit.Allowed, Users: users(4)}),                                                            // too much
		record(5, audit.Group{Outcome: audit.Denied, By: capping.BySuppression, Limit: "suppressed", Set: "out", Users: users(5)}), // no import does that
	}
	for imported, differ := range map[bool]int64{false: 5, true: 2} {
		got, err := Run(t.Context(), all(records), Config{
			Recheck: true, Differences: 10, Imported: imported,
			Policies:    func(string) (*capping.Policy, error) { return policy, nil },
			Generations: func(string) (capping.Segments, error) { return &generation{name: "g"}, nil },
		})
		require.NoError(t, err)
		require.Equal(t, differ, got.Recheck.Differ, "%+v", got.Recheck.First)
		require.Len(t, got.Recheck.First, int(differ))
		require.EqualValues(t, 3, got.Recheck.Unrecorded)
		for _, d := range got.Recheck.First {
			require.Equal(t, d.User <= 3, d.Unrecorded, "%+v", d)
		}
	}
}
