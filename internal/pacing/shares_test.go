package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestARateIsDivided checks the parts of a rate. Shares of less than 100 percent must leave a part.
func TestARateIsDivided(t *testing.T) {
	t.Parallel()
	for _, division := range []struct{ percents, parts []int }{
		{[]int{20}, []int{5, 1}}, {[]int{33}, []int{3, 1}}, {[]int{50, 40}, []int{10, 5, 4}},
		{[]int{95}, []int{20, 19}}, {[]int{99}, []int{100, 99}}, {[]int{33, 33, 33}, []int{100, 33, 33, 33}},
		{[]int{100}, []int{1, 1}}, {[]int{60, 40}, []int{5, 3, 2}},
	} {
		var shares []Share
		for _, percent := range division.percents {
			shares = append(shares, Share{Percent: percent})
		}
		require.Equal(t, division.parts, divide(shares))
	}
}

// TestSmallLimitsLeaveAPermit checks that a limit which is too small to be divided exactly leaves a permit to calls
// without a share, unless the shares have 100 percent.
func TestSmallLimitsLeaveAPermit(t *testing.T) {
	t.Parallel()
	always := func(int) time.Duration { return time.Second }
	small := Pacer{Limits: []Limit{{Max: 2, Window: time.Hour}}, Shares: []Share{{"a", 1}, {"b", 98}}}
	_, shut := small.shut(always)
	require.False(t, shut)
	rest, keeps := small.rest(func(int) bool { return true })
	require.True(t, keeps)
	require.Equal(t, []Limit{{Max: 1, Window: time.Hour}}, rest.Limits)
	small.Shares[0].Percent = 2
	opens, shut := small.shut(always)
	require.True(t, shut)
	require.Equal(t, time.Hour, opens)
}
