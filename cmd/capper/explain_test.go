package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/terminal"
)

func TestAnExplanationShowsTitles(t *testing.T) {
	t.Parallel()
	at, id, none := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), "promo-1", "plain"
	sends := []api.Send{{At: at, MessageID: &id, Title: "Black Friday"}, {At: at, MessageID: &none}}
	for i, want := range []string{`SENT AT                   CHANNEL  NAMESPACE  MESSAGE  TITLE
2026-11-22T00:00:00.000Z  -        -          promo-1  Black Friday
2026-11-22T00:00:00.000Z  -        -          plain    -
`, `SENT AT                   CHANNEL  NAMESPACE  MESSAGE
2026-11-22T00:00:00.000Z  -        -          plain
`} {
		var out bytes.Buffer
		on := &terminal.Streams{Program: "capper", Out: terminal.NewWriter(&out)}
		require.NoError(t, printExplanation(on, 42, &api.Explanation{UserID: 42, Segment: "new", Sends: sends[i:]}))
		require.Contains(t, out.String(), want)
	}
}

func TestAnExplanationTellsWhatIsWithheld(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	on := &terminal.Streams{Program: "capper", Out: terminal.NewWriter(&out)}
	night := api.Quiet{From: "21:00", To: "08:00", Zone: "Asia/Singapore", Channels: []string{"push"}}
	hours := night
	hours.Zone = "user"
	require.NoError(t, printExplanation(on, 42, &api.Explanation{
		UserID: 42, Segment: "new", Generation: "g1", Timezone: "Asia/Singapore",
		Suppressed: []api.Suppression{{Set: "bounced", Channels: []string{"email"}, EvenExempt: true}},
		Holdout:    &api.Holdout{Percent: 5, Salt: "2027-q1"},
		Quiet:      []api.QuietStanding{{Quiet: night, Now: true, Until: &until}, {Quiet: hours}},
		NeverOpen:  []string{"email", "push"},
		Limits: []api.Standing{
			{Limit: api.Limit{Name: "daily", Max: 2, Window: "24h"}, Used: 1},
			{Limit: api.Limit{Name: "strict", Max: 1, Window: "24h", Shadow: true}, Used: 1, RetryAt: &until},
			{Limit: api.Limit{Name: "never", Window: "24h", Shadow: true}},
		},
		WouldBeDeniedBy: []string{"strict", "never"}, Missing: []string{"de", "opted-out"},
	}))
	require.Equal(t, `user 42 is in segment new, time zone Asia/Singapore (generation g1)
missing sets: the configuration requires de, opted-out:`+
		` the lines below assume that the user is in none of them, and sends that need one are unavailable
suppressed: user is in bounced, channels email; exempt sends: denied too
held out: one of 5% of all users (salt 2027-q1), channels all
quiet hours: 21:00 to 08:00 in Asia/Singapore, channels push: until 2026-11-22T00:00:00.000Z
quiet hours: 21:00 to 08:00 in Asia/Singapore, channels push: not now
quiet hours leave no minute open: together they deny all sends on email, push
LIMIT            USED  MAX  WINDOW  CHANNELS  STATE
daily            1     2    24h     all       a slot is free
strict (shadow)  1     1    24h     all       would be capped until 2026-11-22T00:00:00.000Z
never (shadow)   0     0    24h     all       would always be capped
would be denied by strict, never (shadow: counted only)
no sends recorded
`, out.String())
}
