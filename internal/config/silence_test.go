package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSilences checks quiet hours with two clocks in every zone on every day, only for hours that apply together.
func TestSilences(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	const channels = "channels: {push: 1, sms: 2}\nquiet:\n"
	for name, c := range map[string]struct {
		quiet string
		want  []string // each text in a separate line
		not   []string // in none
	}{
		"none":      {"channels: {push: 1}\n", nil, nil},
		"one clock": {channels + "- {from: '21:00', to: '08:00', zone: user}\n", nil, nil},
		"leave some": {channels + "- {from: '21:00', to: '08:00', zone: user}\n- {from: '22:00', to: '06:00', zone: " +
			"UTC}\n", nil, nil},
		"day and night": {
			channels + "- {from: '08:00', to: '20:00', zone: user}\n- {from: '20:00', to: '08:00', zone: UTC}\n",
			[]string{"quiet: [0] and [1] leave no minute of the day open to all sends, on every day, in "},
			[]string{"Asia/Singapore", "Europe/Berlin,"},
		},
		"in winter": {
			channels + "- {from: '08:00', to: '20:00', zone: user}\n- {from: '19:00', to: '07:00', zone: UTC}\n",
			[]string{"on 150 days from 2026-11-24 on", "Europe/Berlin"}, []string{"every day, in 100 time zones"},
		},
		"on one day": {
			channels + "- {from: '02:50', to: '02:10', zone: user}\n",
			[]string{"[0] leave no minute of the day open to all sends, on 2027-03-28, in ", "Europe/Berlin",
				"on 2027-03-14, in "}, []string{"Asia/Tokyo", "UTC"},
		},
		"fixed clocks": {
			channels + "- {from: '08:00', to: '20:00', zone: Europe/Berlin}\n- {from: '19:00', to: '07:00', zone: " +
				"UTC}\n",
			[]string{"[0] and [1] leave no minute of the day open to all sends, on "}, []string{"time zone"},
		},
		"other channels": {
			channels + "- {from: '08:00', to: '20:00', zone: user, channels: [push]}\n- {from: '20:00', to: " +
				"'08:00', zone: UTC, channels: [sms]}\n", nil, nil,
		},
		"a channel in common": {
			channels + "- {from: '08:00', to: '20:00', zone: user, channels: [push]}\n- {from: '20:00', to: " +
				"'08:00', zone: UTC}\n",
			[]string{"open to sends on push, on every day"}, []string{"on sms", "without a channel"},
		},
		"users of two sets": {
			channels + "- {from: '08:00', to: '20:00', zone: user, sets: [vip]}\n- {from: '20:00', to: '08:00', " +
				"zone: UTC, sets: [country/es, country/pt]}\n",
			[]string{"open to all sends to users in vip and country/es or country/pt, on every day"}, nil,
		},
		"a set beside everybody": {
			channels + "- {from: '08:00', to: '20:00', zone: user}\n- {from: '20:00', to: '08:00', zone: UTC, sets: " +
				"[vip]}\n- {from: '01:00', to: '02:00', zone: UTC, sets: [b]}\n",
			[]string{"[0] and [1] leave no minute of the day open to all sends to users in vip, on every day"},
			[]string{"vip and b"},
		},
	} {
		cfg, err := Parse("f", []byte(minimal+c.quiet))
		require.NoError(t, err, name)
		found := Silences(cfg.Policy, from)
		said := strings.Join(found, "\n")
		if c.want == nil {
			require.Empty(t, found, name)
		}
		for _, want := range c.want {
			require.Contains(t, said, want, name)
		}
		for _, not := range c.not {
			require.NotContains(t, said, not, name)
		}
	}
}

// TestSilencesOfManyHoursAreBounded checks that the maximum number of hours and sets is processed within bounds.
func TestSilencesOfManyHoursAreBounded(t *testing.T) {
	t.Parallel()
	text := "channels: {a: 1, b: 2, c: 3, d: 4}\nquiet:\n"
	for i := range 16 {
		sets := ""
		if i < 8 {
			sets = ", sets: [s" + string(rune('a'+i)) + "]"
		}
		zone := []string{"user", "UTC", "Asia/Kolkata", "Europe/Berlin"}[i%4]
		text += "- {from: '" + []string{"00:00", "06:00", "12:00", "18:00"}[i%4] + "', to: '" +
			[]string{"07:00", "12:30", "18:30", "23:00"}[i%4] + "', zone: " + zone + sets + "}\n"
	}
	cfg, err := Parse("f", []byte(minimal+text))
	require.NoError(t, err)
	require.NotPanics(t, func() { Silences(cfg.Policy, time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)) })
}
