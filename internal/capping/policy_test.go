package capping_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

const day = 24 * time.Hour

func TestPolicyLimits(t *testing.T) {
	t.Parallel()
	policy := capping.Policy{
		Default:  []capping.Limit{{Name: "default"}},
		Segments: map[string][]capping.Limit{"new": {{Name: "new"}}, "vip": {}},
	}
	require.Equal(t, "default", policy.Limits("")[0].Name)
	require.Equal(t, "default", policy.Limits("lapsed")[0].Name)
	require.Equal(t, "new", policy.Limits("new")[0].Name)
	require.Empty(t, policy.Limits("vip"), "an empty list is uncapped, not the default")
	configured, published := policy.Unmatched([]string{"z", "new", "a"})
	require.Equal(t, []string{"vip"}, configured)
	require.Equal(t, []string{"a", "z"}, published)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	rolling := func(windows ...time.Duration) (limits []capping.Limit) {
		for _, w := range windows {
			limits = append(limits, capping.Limit{Max: 1, Window: w})
		}
		return limits
	}
	for name, c := range map[string]struct {
		policy capping.Policy
		widen  time.Duration
		want   time.Duration
	}{
		"no limits":          {want: day},
		"no limits, widened": {widen: time.Second, want: day + time.Second},
		"short windows only": {capping.Policy{Default: rolling(time.Minute)}, 0, time.Minute},
		"the longest of a segment": {capping.Policy{Default: rolling(day),
			Segments: map[string][]capping.Limit{"a": rolling(7*day, time.Hour)}}, 0, 7 * day},
		"widened": {capping.Policy{Default: rolling(day)}, 500 * time.Millisecond, day +
			500*time.Millisecond},
		"week of a calendar": {capping.Policy{Default: []capping.Limit{{Max: 1, Calendar: capping.CalendarWeek}}}, 0,
			7*day + 2*time.Hour},
		"month of a calendar": {capping.Policy{Default: []capping.Limit{{Max: 1, Calendar: capping.CalendarMonth,
			UserZone: true}}}, time.Second, 31*day + 2*time.Hour + time.Second},
	} {
		require.Equal(t, c.want, c.policy.Retention(c.widen), name)
	}
}

// TestWidenedWindows checks that a clock tolerance t makes a window longer by exactly 2t.
func TestWidenedWindows(t *testing.T) {
	t.Parallel()
	const tolerance = 250 * time.Millisecond
	limit := capping.Limit{Max: 1, Window: time.Minute}
	log := logOf(1000)
	free := capping.Instant(1000 + 60_000 + 500)
	for now, want := range map[capping.Instant]capping.Verdict{
		1000:     {Outcome: capping.Denied, FreesAt: free},
		free - 1: {Outcome: capping.Denied, FreesAt: free},
		free:     {Outcome: capping.Allowed},
	} {
		require.Equal(t, want, capping.Judge(log, 0, letter(9), []capping.Rule{limit.Rule(now, 2*tolerance)}, now, 0))
	}
}

func TestChannelSet(t *testing.T) {
	t.Parallel()
	all := capping.ChannelSetOf()
	require.True(t, all.All())
	require.True(t, all.Has(0))
	require.True(t, all.Has(255))
	require.Empty(t, all.Channels())
	rapid.Check(t, func(t *rapid.T) {
		channels := rapid.SliceOfNDistinct(rapid.Map(rapid.Uint8(),
			func(c uint8) capping.Channel { return capping.Channel(c) }),
			1, 20, func(c capping.Channel) capping.Channel { return c }).Draw(t, "channels")
		set := capping.ChannelSetOf(channels...)
		require.False(t, set.All())
		require.ElementsMatch(t, channels, set.Channels())
		for c := range 256 {
			in := false
			for _, channel := range channels {
				in = in || int(channel) == c
			}
			require.Equal(t, in, set.Has(capping.Channel(c)))
		}
	})
}
