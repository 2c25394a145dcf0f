package whatif

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestEachPropertyOfALimitMatters checks that two policies are alike only if they agree in every property of a limit.
// Otherwise a replay would keep the recorded outcome although the other policy may decide differently.
func TestEachPropertyOfALimitMatters(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	rolling := capping.Limit{Name: "daily", Max: 2, Window: day, Channels: capping.ChannelSetOf(1, 2)}
	calendar := capping.Limit{Name: "daily", Max: 2, Calendar: capping.CalendarDay}
	for name, c := range map[string]struct {
		limit  capping.Limit
		change func(*capping.Limit)
	}{
		"name":      {rolling, func(l *capping.Limit) { l.Name = "other" }},
		"max":       {rolling, func(l *capping.Limit) { l.Max = 3 }},
		"window":    {rolling, func(l *capping.Limit) { l.Window = 2 * day }},
		"channels":  {rolling, func(l *capping.Limit) { l.Channels = capping.ChannelSetOf(1) }},
		"shadow":    {rolling, func(l *capping.Limit) { l.Shadow = true }},
		"calendar":  {calendar, func(l *capping.Limit) { l.Calendar = capping.CalendarWeek }},
		"user zone": {calendar, func(l *capping.Limit) { l.UserZone = true }},
		"location":  {calendar, func(l *capping.Limit) { l.Location = berlin }},
	} {
		policies := [2]*capping.Policy{{Default: []capping.Limit{c.limit}}, {Default: []capping.Limit{c.limit}}}
		require.True(t, compare(policies[0], policies[1], 1, false).all, name)
		c.change(&policies[1].Default[0])
		require.False(t, compare(policies[0], policies[1], 1, false).all, name)
	}
}
