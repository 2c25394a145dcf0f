package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestEveryOutcomeIsOnTheOverview(t *testing.T) {
	t.Parallel()
	var want, shown []string
	for _, outcome := range capping.Outcomes() {
		want = append(want, outcome.String())
	}
	for _, kind := range outcomes {
		shown = append(shown, string(kind))
	}
	require.ElementsMatch(t, want, shown, "outcomes of overview.go, whose words and colours have a case for each")
}
