package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// A limit that a reload drops for a moment counts the sends of before and of
// that moment when it is back.
func TestLimitGoneForAMomentStillCounts(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 9, weekly: 2}}")
	clock := testkit.NewClock()
	p, _ := inside(t, file, clock.Now)
	reload := func(limits string) {
		before := p.get("/v1/status")["config_version"]
		write(t, file, embedded(filepath.Dir(file), limits))
		testkit.Eventually(t, func() bool { return p.get("/v1/status")["config_version"] != before })
	}
	ask := func(message string) int {
		got, err := p.filter(message, 7)
		require.NoError(t, err)
		return len(got.Allowed)
	}
	require.Equal(t, 2, ask("first")+ask("second")+ask("third"))
	reload("{default: [{name: blink, max: 9, window: 1s}]}")
	clock.Advance(1100 * time.Millisecond)
	require.Equal(t, 1, ask("fourth"))
	require.Contains(t, fmt.Sprint(p.get("/v1/status")["config"]), "a reload shortened the longest window from "+
		"168h to 1s")
	p.logs("a reload shortened")
	reload("{default: {daily: 9, weekly: 3}}")
	require.Equal(t, 0, ask("fifth"))
	require.NotContains(t, fmt.Sprint(p.get("/v1/status")["config"]), "shortened")
}
