package whatif

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
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
