package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/capping"
)

// An outcome that the journal does not know would be recorded as unavailable.
func TestEveryOutcomeIsRecorded(t *testing.T) {
	t.Parallel()
	for _, outcome := range capping.Outcomes() {
		if outcome == capping.Denied {
			continue // denials are groups of their own, by cause
		}
		alone, ok := uniform([]capping.Verdict{{Outcome: outcome}})
		require.True(t, ok, "uniform has no case for %s", outcome)
		require.Equal(t, outcome.String(), alone.String())
		var s sorter
		mixed := s.groupsOf(&capping.Decisions{Users: []capping.UserID{1, 2}, Codes: []uint8{0, 0},
			Verdicts: []capping.Verdict{{Outcome: outcome}, {Outcome: other(outcome)}}})
		require.Len(t, mixed, 2)
		require.Contains(t, []audit.Outcome{mixed[0].Outcome, mixed[1].Outcome}, alone)
	}
}

func other(outcome capping.Outcome) capping.Outcome {
	if outcome == capping.Allowed {
		return capping.Replayed
	}
	return capping.Allowed
}
