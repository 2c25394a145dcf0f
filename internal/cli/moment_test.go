package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/terminal"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"30d": now.AddDate(0, 0, -30), "2w": now.AddDate(0, 0, -14), "12h": now.Add(-12 * time.Hour),
		"90m":                       now.Add(-90 * time.Minute),
		"2026-11-20":                time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		"2026-11-20T08:30":          time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		"2026-11-20T08:30:05Z":      time.Date(2026, 11, 20, 8, 30, 5, 0, time.UTC),
		"2026-11-20T08:30:05+08:00": time.Date(2026, 11, 20, 0, 30, 5, 0, time.UTC),
	} {
		var m moment
		require.NoError(t, m.UnmarshalText([]byte(text)))
		require.Equal(t, capping.InstantOf(want), m.Instant(now), text)
	}
	require.Zero(t, new(moment).Instant(now))
	require.NoError(t, new(moment).UnmarshalText([]byte("65535d")))
	for _, text := range []string{"", "d", "-3d", "0d", "1.5d", "-5m", "0s", "yesterday", "2026-13-01", "20261120",
		"65536d", "9363w", "30501w", "1572841h"} {
		require.ErrorContains(t, new(moment).UnmarshalText([]byte(text)),
			"must be an age up to 65535d such as 30d or 12h, or a time", text)
	}
}

func TestASpanHasAnEnd(t *testing.T) {
	t.Parallel()
	var s Span
	require.NoError(t, s.Since.UnmarshalText([]byte("1d")))
	require.NoError(t, s.Until.UnmarshalText([]byte("2d")))
	_, _, err := s.instants(time.Now())
	require.ErrorContains(t, err, "--until 2d must be later than --since")
	require.Empty(t, terminal.Hint(err))
	s = Span{}
	require.NoError(t, s.Since.UnmarshalText([]byte("2026-11-30")))
	require.NoError(t, s.Until.UnmarshalText([]byte("2026-11-30")))
	_, _, err = s.instants(time.Now())
	require.Equal(t, "a date is the start of the day in UTC: for the whole day, use --until 2026-12-01",
		terminal.Hint(err))
}
