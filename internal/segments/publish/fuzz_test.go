package publish

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments"
)

// FuzzAcceptance checks that every accepted acceptance fits into a manifest, parses again from its own
// text, and matches no unchanged set.
func FuzzAcceptance(f *testing.F) {
	for _, text := range []string{"opted-out: -57%", "tz/Asia/Singapore: vanishes", "a: empties", "a: -0.04% +3%",
		"a:-90", "a: +1e3%", "x"} {
		f.Add(text, "because", uint64(1000), uint64(570), uint64(30))
	}
	f.Fuzz(func(t *testing.T, text, reason string, before, removed, added uint64) {
		a, err := ParseAcceptance(text, reason)
		if err != nil {
			return
		}
		again, err := ParseAcceptance(a.text(), a.Reason)
		require.NoError(t, err)
		require.Equal(t, a, again)
		require.LessOrEqual(t, len(a.Change), segments.MaxAcceptedChange)
		require.False(t, a.matches(&Change{State: Same, Before: before, After: before}))
		c := Change{State: changed, Before: before, Removed: min(removed, before), Added: added}
		if a.matches(&c) && a.loss != nil {
			require.Positive(t, c.Removed)
			require.Zero(t, a.rest(c).Removed)
		}
	})
}
