package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/console"
)

func TestLimitsAreATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	on := &console.Streams{Program: "capper", Out: console.NewWriter(&out)}
	require.NoError(t, printLimits(on, &client.Limits{
		Version: "v1", ToleranceMS: 500,
		Default: []client.Limit{{Name: "daily", Max: 1, Window: "24h"}},
		Segments: map[string][]client.Limit{
			"vip": {
				{Name: "push-gap", Max: 1, Window: "30m", Channels: []string{"push", "sms"}},
				{Name: "email-day", Max: 12, Window: "day", Calendar: "day", Timezone: "Asia/Singapore", Channels: []string{"email"}},
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
