package app

import (
	"strings"
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
	require.Contains(t, problem[0], "from 168h to 24h: sends are kept for the old window until 2026-11-27T12:00:00Z")
	require.Empty(t, s.problems(week, now), "it is undone")
	s.note(short, looksBack(time.Hour), now.Add(day))
	require.Equal(t, strings.Replace(problem[0], "to 24h", "to 1h", 1), s.problems(looksBack(time.Hour),
		now.Add(day))[0])
	require.Empty(t, s.problems(short, now.Add(7*day)), "nothing of it is kept any more")
	s.note(short, looksBack(time.Hour), now.Add(7*day))
	require.Len(t, s.problems(looksBack(time.Hour), now.Add(7*day)), 1)
}
