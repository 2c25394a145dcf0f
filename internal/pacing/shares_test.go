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
		{[]int{100}, []int{1, 1}}, {[]int{60, 40}, []int{5, 3, 2}}, {[]int{33, 33, 34}, []int{100, 33, 33, 34}},
		{[]int{150}, []int{2, 3}}, {[]int{60, 60}, []int{5, 3, 3}}, {[]int{0}, []int{1, 0}},
	} {
		var shares []Share
		for _, percent := range division.percents {
			shares = append(shares, Share{Percent: percent})
		}
		require.Equal(t, division.parts, divide(shares))
	}
}

// TestEveryPairOfSharesIsDivided divides a rate between two shares with all percentages. A configuration may have
// invalid percentages before capper refuses it.
func TestEveryPairOfSharesIsDivided(t *testing.T) {
	t.Parallel()
	for a := range 151 {
		for b := range 151 {
			parts := divide([]Share{{"a", a}, {"b", b}})
			if a == 0 || b == 0 || a+b > 100 {
				continue
			}
			n, left := parts[0], parts[0]-parts[1]-parts[2]
			require.LessOrEqual(t, n, 100)
			require.GreaterOrEqual(t, parts[1]*100, a*n)
			require.LessOrEqual(t, parts[1]*100, (a+1)*n)
			require.GreaterOrEqual(t, parts[2]*100, b*n)
			require.LessOrEqual(t, parts[2]*100, (b+1)*n)
			require.Equal(t, a+b < 100, left > 0, "%d and %d of %d", parts[1], parts[2], n)
			require.GreaterOrEqual(t, left, 0)
		}
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
