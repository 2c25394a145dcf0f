package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// TestSharesOfPacersAreShown checks that the table has a column with shares only if a pacer has shares.
func TestSharesOfPacersAreShown(t *testing.T) {
	t.Parallel()
	plain := api.PacerState{Name: "mail", Rate: "10/s"}
	split := api.PacerState{Name: "carrier", Rate: "250/s",
		Shares: []api.PacerShare{{Name: "otp", Percent: 20}, {Name: "alerts", Percent: 5}}}
	last := func(pacers ...api.PacerState) (title string, cells []string) {
		table := pacersTable(pacers)
		for _, row := range table.Rows {
			require.Len(t, row, len(table.Columns))
			cells = append(cells, row[len(row)-1].Text)
		}
		return table.Columns[len(table.Columns)-1].Title, cells
	}
	title, cells := last(plain, split)
	require.Equal(t, "Shares", title)
	require.Equal(t, []string{orNone(""), "otp 20 %, alerts 5 %"}, cells)
	title, _ = last(plain)
	require.Equal(t, "Longest wait", title)
}

// TestAPacerWithAFullLimitLaterIsFree checks that the next permit decides, because all used slots may be in the future.
func TestAPacerWithAFullLimitLaterIsFree(t *testing.T) {
	t.Parallel()
	used := 2
	later := api.PacerState{Name: "short", QueueMS: api.Millis(10e9), Used: &used, Max: 2, Window: "1s"}
	require.Equal(t, "free: the next permit needs no wait", standing(later))
	later.NextMS = api.Millis(5e8)
	require.Equal(t, "full: the next permit waits 500 ms", standing(later))
	unread := api.PacerState{Name: "short", Unavailable: true, Limits: []api.PacerLimitUse{{Max: 2, Window: "1s"}}}
	require.Equal(t, "unavailable: the store cannot read its permits", standing(unread))
	require.Empty(t, millis(unread, 0).Text)
	require.Equal(t, "unavailable", pacerLimits([]api.PacerState{unread}).Rows[0][2].Text)
}
