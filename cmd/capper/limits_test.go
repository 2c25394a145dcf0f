package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/terminal"
)

func TestLimitsAreATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	on := &terminal.Streams{Program: "capper", Out: terminal.NewWriter(&out)}
	require.NoError(t, printLimits(on, &api.Policy{
		Version: "v1", ToleranceMS: 500,
		Default: []api.Limit{{Name: "daily", Max: 1, Window: "24h"}},
		Segments: map[string][]api.Limit{
			"vip": {
				{Name: "push-gap", Max: 1, Window: "30m", Channels: []string{"push", "sms"}},
				{Name: "email-day", Max: 12, Window: "day", Calendar: "day", Timezone: "Asia/Singapore",
					Channels: []string{"email"}},
			},
			"staff": nil,
		},
	}))
	require.Equal(t, `limits of configuration v1, rolling windows are longer by 500ms
SEGMENT  LIMIT      MAX  WINDOW                 CHANNELS
default  daily      1    24h                    all
staff    uncapped
vip      push-gap   1    30m                    push,sms
vip      email-day  12   day in Asia/Singapore  email
`, out.String())
}

func TestLimitsTellWhatIsWithheld(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	on := &terminal.Streams{Program: "capper", Out: terminal.NewWriter(&out)}
	require.NoError(t, printLimits(on, &api.Policy{
		Version: "v1",
		Default: []api.Limit{{Name: "strict", Max: 1, Window: "month", Calendar: "month", Timezone: "user",
			Shadow: true}},
		Suppress: []api.Suppression{{Set: "opted-out"}, {Set: "bounced", Channels: []string{"email"},
			EvenExempt: true}},
		Quiet: []api.Quiet{{From: "21:00", To: "08:00", Zone: "user", Channels: []string{"sms", "push"},
			Sets: []string{"country/sg"}}},
		Holdout: &api.Holdout{Percent: 2.5, Salt: "2027-q1"}, Timezone: "Asia/Singapore",
	}))
	require.Equal(t, `limits of configuration v1
SEGMENT  LIMIT            MAX  WINDOW                   CHANNELS
default  strict (shadow)  1    month where the user is  all
SUPPRESSED  CHANNELS  EXEMPT SENDS
opted-out   all       pass
bounced     email     denied too
QUIET HOURS     ZONE  CHANNELS  SETS
21:00 to 08:00  user  sms,push  country/sg
holdout: 2.5% of all users (salt 2027-q1), channels all
time zone of users in no time zone set: Asia/Singapore
`, out.String())
}
