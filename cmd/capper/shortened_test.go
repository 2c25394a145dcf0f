package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func looksBack(window time.Duration) *capping.Policy {
	return &capping.Policy{Default: []capping.Limit{{Name: "limit", Max: 1, Window: window}}}
}

func TestShortenedReloadIsAProblemWhileSendsAreKept(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	week, short := looksBack(7*day), looksBack(day)
	var s shortened
	require.Empty(t, s.problems(week, now))
	s.note(week, short, now)
	problem := s.problems(short, now)
	require.Len(t, problem, 1)
	require.Contains(t, problem[0], "from 168h to 24h: sends are kept as before until 2026-11-27T12:00:00Z")
	require.Empty(t, s.problems(week, now), "it is undone")
	s.note(short, looksBack(time.Hour), now.Add(day))
	require.Equal(t, strings.Replace(problem[0], "to 24h", "to 1h", 1), s.problems(looksBack(time.Hour), now.Add(day))[0])
	require.Empty(t, s.problems(short, now.Add(7*day)), "nothing of it is kept any more")
	s.note(short, looksBack(time.Hour), now.Add(7*day))
	require.Len(t, s.problems(looksBack(time.Hour), now.Add(7*day)), 1)
}

// A limit that a reload drops for a moment counts the sends of before and of
// that moment when it is back.
func TestLimitGoneForAMomentStillCounts(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 9, weekly: 2}}")
	p := serve(t, file)
	reload := func(limits string) {
		before := p.get("/v1/status")["config_version"]
		write(t, file, embedded(filepath.Dir(file), limits))
		require.Eventually(t, func() bool { return p.get("/v1/status")["config_version"] != before }, 10*time.Second, 10*time.Millisecond)
	}
	ask := func(message string) int {
		got, err := p.filter(message, 7)
		require.NoError(t, err)
		return len(got.Allowed)
	}
	require.Equal(t, 2, ask("first")+ask("second")+ask("third"))
	asked := time.Now()
	reload("{default: [{name: blink, max: 9, window: 1s}]}")
	require.Eventually(t, func() bool { return time.Since(asked) > 1100*time.Millisecond }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, ask("fourth"))
	require.Contains(t, fmt.Sprint(p.get("/v1/status")["config"]), "a reload shortened how far they look back from 168h to 1s")
	require.Contains(t, p.log.String(), "a reload shortened")
	reload("{default: {daily: 9, weekly: 3}}")
	require.Equal(t, 0, ask("fifth"))
	require.NotContains(t, fmt.Sprint(p.get("/v1/status")["config"]), "shortened")
	p.signal(syscall.SIGTERM)
}
