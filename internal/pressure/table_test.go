package pressure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// TestTablesShowWeeksBeforeTheAuditAsUnknown checks that people and machines read no 0 for a week that the audit lacks.
func TestTablesShowWeeksBeforeTheAuditAsUnknown(t *testing.T) {
	t.Parallel()
	to := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	none, all := int64(7), int64(9)
	p := &api.Pressure{AuditBegins: to.Add(-Week - time.Hour)}
	people := api.PressurePeople{By: api.PressureAll, Size: &all}
	for i := range 3 {
		end := to.Add(-time.Duration(i) * Week)
		p.Weeks = append(p.Weeks, api.PressureWeek{From: end.Add(-Week), To: end})
		people.Weeks = append(people.Weeks, api.PressureSpread{None: &none, Got: make([]int64, api.PressureMost)})
	}
	people.Weeks[0].Messages, people.Weeks[0].Got[0] = 2, 2
	p.People = []api.PressurePeople{people}
	p.Campaigns = []api.PressureCampaign{{PressureMessage: api.PressureMessage{MessageID: "spring"},
		Messages: []int64{2, 0, 0}}}

	tables := Tables(p, false)
	require.Equal(t, [][]string{
		{"all", "-", "2026-11-20 09:00", "2", "7", "2"},
		{"all", "-", "2026-11-13 09:00", "0", "7", "0"},
		{"all", "-", "2026-11-06 09:00", "unknown", "unknown", "unknown"},
	}, tables[0].Rows)
	require.Equal(t, []string{"2", "0", "unknown"}, tables[2].Rows[0][6:])
	tables = Tables(p, true)
	require.Equal(t, []string{"2", "7", "2"}, tables[0].Rows[0][3:6])
	require.Equal(t, []string{"", "", ""}, tables[0].Rows[2][3:6])
	require.Equal(t, []string{"2", "0", ""}, tables[2].Rows[0][6:])

	p.AuditBegins = time.Time{}
	require.Equal(t, "0", Tables(p, false)[0].Rows[2][3], "no call was read")
}
