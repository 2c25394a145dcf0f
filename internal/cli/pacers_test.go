package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

func TestRowsOfAPacerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := &api.PacerState{Name: "carrier", Unavailable: true, Limits: []api.PacerLimitUse{{Max: 5, Window: "1h"}}}
	require.Equal(t, [][]any{{"carrier", "1h", "unavailable", 5, "unavailable", "unavailable"}}, pacerRows(p))
	p.Rate = "9/s"
	require.Equal(t, []any{"carrier", "rate", "", "9/s", "unavailable", "unavailable"}, pacerRows(p)[1])
}
